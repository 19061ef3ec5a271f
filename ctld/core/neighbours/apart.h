// Which jobs are kept off each other's nodes, because one has slowed down the other on a common
// node. It is kept in Runtime: a restarted controller learns it again.
//
// Jobs of one user and one name are treated as one, because the next run of a job will probably
// affect others as the last one did.
#pragma once

#include <cstdint>
#include <vector>

#include "common/proto/neighbours.h"
#include "ctld/core/context.h"
#include "ctld/core/runtime.h"
#include "ctld/sched/change.h"

namespace gantry::core {

// The number of jobs of this user and name: sched::NamesakesApart.
std::uint32_t namesake_of(const State& state, const Job& job);

// Remembers, for controller.keep_apart, the two jobs of a finding that a node has just made, if the
// cause is certain enough. Both jobs run on the node.
void keep_apart(Context& ctx, const proto::SharingFinding& finding);

// Drops the pairs whose time is over, and all of them if controller.keep_apart is 0.
void forget_apart(Context& ctx);

sched::NamesakesApart apart_view(const Runtime& rt);

// The jobs that this job is kept apart from. With `sees_all` the asker sees all jobs; other askers
// learn nothing of another tenant's jobs.
std::vector<proto::ApartRow> apart_rows(const Context& ctx, const Job& job, bool sees_all);

}  // namespace gantry::core
