// Checkpoints of running jobs. Work that a job has saved is not lost when the job is preempted, so
// the planner counts lost work from the newest checkpoint (ctld/sched/preempt/preempt.h). A job
// reports a checkpoint with `gctl checkpointed`, or by touching the file that
// $GANTRY_CHECKPOINT_FILE names; its node looks at that file with every heartbeat.
#pragma once

#include "common/proto/attempt.h"
#include "ctld/core/context.h"

namespace gantry::core {

// Notes the checkpoints of a heartbeat that left the node at `sent`, according to the node's clock.
void note_checkpoints(Context& ctx, NodeId node,
                      const std::vector<proto::AttemptCheckpoint>& checkpoints, Instant sent);

}  // namespace gantry::core
