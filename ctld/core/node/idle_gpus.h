// GPUs that jobs have and do not use: what their tenant wants done about it (tenancy.h,
// IdleGpuLimits), as heartbeats tell how long each has done nothing. The mildest first: an event, a
// word to the owner, back to the queue, the end. What was done about an attempt is part of State,
// so that a restart does not say it again; once all its GPUs work again it begins anew.
//
// One idle GPU of several is noted and warned of; a job is ended only when none of them, on none of
// its nodes, has done anything for as long. What a node does not tell of counts as busy.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// After a heartbeat of the node.
void look_at_idle_gpus(Context& ctx, NodeId node);

}  // namespace gantry::core
