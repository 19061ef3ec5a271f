// A running job that releases some of its nodes.
//
// Its part on these nodes ends like a cancelled job, with the same time between the signals, and
// its steps there end. From the decision on the job counts less for limits of use and fair share;
// each node is charged until it is released. A job never gets nodes while it runs.
#pragma once

#include "common/proto/job_change.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_shrink.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// Works out how a running job shrinks to this size: min_nodes keeps that many nodes in the order of
// their ranks, required_nodes keeps the named ones. The first node, which runs the script, stays.
// Returns no nodes if the job has this size already.
Result<event::NodesGivenBack> shrink(const State& state, const Job& job,
                                     const proto::Reshape& wanted);

// Ends the running steps that have tasks on these nodes, also on the nodes that stay: a step that
// lost some of its tasks is useless, unless the job was submitted with --no-kill.
void end_steps_on(Context& ctx, const Job& job, const std::vector<NodeId>& nodes);

}  // namespace gantry::core
