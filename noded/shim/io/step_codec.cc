// The only wire message that the shim itself uses. With common/proto/codecs, which has
// all other messages too, a program that starts with every job would be twice as large.
#include "common/codec/define.h"
#include "common/proto/step_io.h"

GANTRY_CODEC_INSTANTIATE(gantry::proto::StepFrame)
