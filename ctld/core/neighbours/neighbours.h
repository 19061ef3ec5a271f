// Who takes what from whom on the nodes, as their daemons say in heartbeats (proto::NodeSharing).
// It is kept in Runtime: after a restart the nodes say it again.
//
// What is told of another tenant's job is that there is one: neither its name, nor its user, nor
// its tenant.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/neighbours.h"
#include "ctld/core/context.h"

namespace gantry::core {

// The job whose attempt this is, while it is active; null: it is over.
const Job* active_job(const State& state, const proto::AttemptKey& key);

// Takes over what a node says of its own jobs, writes what is new into the log, and tells the jobs
// that are held up or held back, in their standard error.
void take_sharing(Context& ctx, NodeId node, proto::NodeSharing&& said);

// Whether the asker sees this job.
using SeesJob = std::function<bool(const Job&)>;
// All that is known of the job's nodes that concerns it, the oldest first.
std::vector<proto::NeighbourEvent> neighbour_events(const Context& ctx, const Job& job,
                                                    const SeesJob& sees);

}  // namespace gantry::core
