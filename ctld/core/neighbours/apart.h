// Which jobs are kept off each other's nodes, because one has held up the other where they met. It
// is kept in Runtime: a controller that starts anew learns it again.
//
// Jobs of one user and one name are taken as one: what the next run of a job does to others is what
// the last did.
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

// Remembers the jobs of a finding that a node makes now for controller.keep_apart, if their
// neighbour is known well enough to be the cause. Both run on the node.
void keep_apart(Context& ctx, const proto::SharingFinding& finding);

// Drops the pairs whose time is over, and all of them if controller.keep_apart is 0.
void forget_apart(Context& ctx);

sched::NamesakesApart apart_view(const Runtime& rt);

// The jobs that this job is kept apart from. `sees_all`: the asker sees all jobs; others learn
// nothing of the jobs of another tenant.
std::vector<proto::ApartRow> apart_rows(const Context& ctx, const Job& job, bool sees_all);

}  // namespace gantry::core
