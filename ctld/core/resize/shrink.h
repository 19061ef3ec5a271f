// A running job that gives back some of its nodes.
//
// It ends its part on them as a job that is cancelled does, with the same time between the signals,
// and its steps there end. From the decision on it counts less for limits of use and fair share;
// each node costs until it has let go. A job never gets nodes while it runs.
#pragma once

#include "common/proto/job_change.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_shrink.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// What becomes of a running job that is to have this size: min_nodes keeps so many nodes in the
// order of their ranks, required_nodes keeps these. The first node, which runs the script, stays.
// No nodes: it has this size already.
Result<event::NodesGivenBack> shrink(const State& state, const Job& job,
                                     const proto::Reshape& wanted);

// Ends the running steps that have tasks on these nodes, on the nodes that stay: a step that has
// lost a part of its tasks is of no use, unless the job was submitted with --no-kill.
void end_steps_on(Context& ctx, const Job& job, const std::vector<NodeId>& nodes);

}  // namespace gantry::core
