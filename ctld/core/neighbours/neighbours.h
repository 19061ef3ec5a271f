// Which job slows down which other job on the nodes, as their daemons report in heartbeats
// (proto::NodeSharing). It is kept in Runtime: after a restart the nodes report it again.
//
// Another tenant's job is mentioned only as existing: without name, user or tenant.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/neighbours.h"
#include "ctld/core/context.h"

namespace gantry::core {

// The job of this attempt, while it is active; null if the attempt is over.
const Job* active_job(const State& state, const proto::AttemptKey& key);

// Takes over what a node reports of its own jobs, logs what is new, and tells the jobs that are
// slowed down or throttled, in their standard error.
void take_sharing(Context& ctx, NodeId node, proto::NodeSharing&& said);

// Whether the asker sees this job.
using SeesJob = std::function<bool(const Job&)>;
// All that is known of the job's nodes and concerns the job, the oldest first.
std::vector<proto::NeighbourEvent> neighbour_events(const Context& ctx, const Job& job,
                                                    const SeesJob& sees);

}  // namespace gantry::core
