// Instantiates the codec of every message, and of structs that are no messages but are stored,
// signed or printed alone.
#include "common/codec/define.h"
#include "common/proto/messages.h"
#include "common/proto/step_io.h"

namespace gantry {

#define X(type, ...) GANTRY_CODEC_INSTANTIATE(proto::type)
#include "common/proto/messages.def"
#undef X

GANTRY_CODEC_INSTANTIATE(JobSpec)
GANTRY_CODEC_INSTANTIATE(Owner)
GANTRY_CODEC_INSTANTIATE(NodePlacement)
GANTRY_CODEC_INSTANTIATE(Verdict)
GANTRY_CODEC_INSTANTIATE(Usage)
GANTRY_CODEC_INSTANTIATE(ExitStatus)
GANTRY_CODEC_INSTANTIATE(proto::JobRow)
GANTRY_CODEC_INSTANTIATE(proto::JobDetail)
GANTRY_CODEC_INSTANTIATE(proto::NodeRow)
GANTRY_CODEC_INSTANTIATE(proto::PartitionRow)
GANTRY_CODEC_INSTANTIATE(proto::HistoryRow)
GANTRY_CODEC_INSTANTIATE(proto::StepRow)
GANTRY_CODEC_INSTANTIATE(proto::StepPermission)
GANTRY_CODEC_INSTANTIATE(proto::AttemptKey)
GANTRY_CODEC_INSTANTIATE(proto::AttemptStatus)
GANTRY_CODEC_INSTANTIATE(proto::QuotaAlert)
GANTRY_CODEC_INSTANTIATE(proto::Increase)
GANTRY_CODEC_INSTANTIATE(proto::PostedBatch)
GANTRY_CODEC_INSTANTIATE(GpuInventory)
GANTRY_CODEC_INSTANTIATE(proto::StepFrame)

}  // namespace gantry
