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
#include "ctld/core/usage_event.h"

namespace gantry {

GANTRY_CODEC_INSTANTIATE(core::JobRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(core::StoredSpec)
GANTRY_CODEC_INSTANTIATE_BINARY(core::SpecHead)
GANTRY_CODEC_INSTANTIATE_BINARY(core::SpecTail)
GANTRY_CODEC_INSTANTIATE_BINARY(core::SpecExtras)
GANTRY_CODEC_INSTANTIATE_BINARY(core::SpecOwner)
GANTRY_CODEC_INSTANTIATE_BINARY(core::NodeRecord)
GANTRY_CODEC_INSTANTIATE(core::PartitionRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(core::TextRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(core::MetaRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(core::EnvironmentBlob)
GANTRY_CODEC_INSTANTIATE(core::DocumentRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(core::ShareNode)
GANTRY_CODEC_INSTANTIATE(core::LedgerSum)
GANTRY_CODEC_INSTANTIATE(core::BudgetBook)
GANTRY_CODEC_INSTANTIATE(core::AdvanceReservation)
GANTRY_CODEC_INSTANTIATE(core::TenancyRevision)
GANTRY_CODEC_INSTANTIATE(core::TriggerState)
GANTRY_CODEC_INSTANTIATE(core::UseRecord)
GANTRY_CODEC_INSTANTIATE(core::SecretState)
GANTRY_CODEC_INSTANTIATE(core::ServiceState)
GANTRY_CODEC_INSTANTIATE_BINARY(core::RemovedRecord)
GANTRY_CODEC_INSTANTIATE_BINARY(core::EnrollToken)
GANTRY_CODEC_INSTANTIATE(core::UsageEvent)
GANTRY_CODEC_INSTANTIATE_FROM_JSON(core::UsageEvent)

}  // namespace gantry
