// The codec of records: the durable form of the controller.
#include "common/codec/define.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/state/budget_state.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/secret_state.h"
#include "ctld/core/state/service_state.h"
#include "ctld/core/state/spec_owner.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/trigger_state.h"
#include "ctld/core/state/use_state.h"
#include "ctld/core/usage_event.h"

namespace gantry {

GANTRY_CODEC_INSTANTIATE(core::JobRecord)
GANTRY_CODEC_INSTANTIATE(core::StoredSpec)
GANTRY_CODEC_INSTANTIATE(core::SpecHead)
GANTRY_CODEC_INSTANTIATE(core::SpecTail)
GANTRY_CODEC_INSTANTIATE(core::SpecExtras)
GANTRY_CODEC_INSTANTIATE(core::SpecOwner)
GANTRY_CODEC_INSTANTIATE(core::NodeRecord)
GANTRY_CODEC_INSTANTIATE(core::PartitionRecord)
GANTRY_CODEC_INSTANTIATE(core::TextRecord)
GANTRY_CODEC_INSTANTIATE(core::MetaRecord)
GANTRY_CODEC_INSTANTIATE(core::EnvironmentBlob)
GANTRY_CODEC_INSTANTIATE(core::DocumentRecord)
GANTRY_CODEC_INSTANTIATE(core::ShareNode)
GANTRY_CODEC_INSTANTIATE(core::LedgerSum)
GANTRY_CODEC_INSTANTIATE(core::BudgetBook)
GANTRY_CODEC_INSTANTIATE(core::AdvanceReservation)
GANTRY_CODEC_INSTANTIATE(core::TenancyRevision)
GANTRY_CODEC_INSTANTIATE(core::TriggerState)
GANTRY_CODEC_INSTANTIATE(core::UseRecord)
GANTRY_CODEC_INSTANTIATE(core::SecretState)
GANTRY_CODEC_INSTANTIATE(core::ServiceState)
GANTRY_CODEC_INSTANTIATE(core::RemovedRecord)
GANTRY_CODEC_INSTANTIATE(core::EnrollToken)
GANTRY_CODEC_INSTANTIATE(core::UsageEvent)

}  // namespace gantry
