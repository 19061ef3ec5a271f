// Wire forms of the orders and records of noded/runtime/launch.h.
#include "common/codec/define.h"
#include "noded/runtime/launch.h"

GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::LaunchRequest)
GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::StepRequest)
GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::StepAttachment)
GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::NodeSetup)
GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::ExitRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::RunningRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::ShimNote)
