// Instantiates the stored and printed forms of types of noded/gpu.
#include "common/codec/define.h"
#include "common/resources/gpu_usage.h"
#include "noded/gpu/generic.h"
#include "noded/gpu/mig/mig.h"
#include "noded/gpu/nvml/discover.h"

GANTRY_CODEC_INSTANTIATE(gantry::gpu::MigIntent)
GANTRY_CODEC_INSTANTIATE(gantry::gpu::KnownGpus)
GANTRY_CODEC_INSTANTIATE(gantry::gpu::GenericResources)
GANTRY_CODEC_INSTANTIATE(gantry::GpuUsage)
