// Checkpoints of running jobs: what a job has saved is not lost when it has to leave, so the
// planner counts lost work from the newest one (ctld/sched/preempt/preempt.h). A job says so by
// `gctl checkpointed`, or by touching the file that $GANTRY_CHECKPOINT_FILE names, which its node
// looks at with every heartbeat.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// From a heartbeat that left the node at `sent` by the node's clock.
void note_checkpoints(Context& ctx, NodeId node,
                      const std::vector<proto::AttemptCheckpoint>& checkpoints, Instant sent);

}  // namespace gantry::core
