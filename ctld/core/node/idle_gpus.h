// GPUs that a job holds and does not use. Heartbeats report how long each was idle, and the
// tenant's limits (tenancy.h, IdleGpuLimits) define what is done about it. The steps, mildest
// first: an event, a warning to the owner, a requeue, the end. The step that was taken for an
// attempt is part of State, so that a restart does not repeat it. When its GPUs are busy again, the
// steps begin again.
//
// The first two steps apply to a single idle GPU of several. A job is requeued or ended only when
// all its GPUs, on all its nodes, have been idle for that long. A GPU without a report counts as
// busy.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// Call it after a heartbeat of the node.
void look_at_idle_gpus(Context& ctx, NodeId node);

}  // namespace gantry::core
