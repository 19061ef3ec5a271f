// The JSON of WallReport, compiled once here.
#include "cli/cluster/wall_probe.h"
#include "common/codec/define.h"

GANTRY_CODEC_INSTANTIATE(gantry::cli::WallReport)
