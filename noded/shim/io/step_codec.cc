// The only wire message of the shim's own; common/proto/instantiate_*.cc, with all the others,
// would double the size of a program that starts with every job.
#include "common/codec/define.h"
#include "common/proto/step_io.h"

GANTRY_CODEC_INSTANTIATE_BINARY(gantry::proto::StepFrame)
