// Weighted multifactor priority, for sites that come from Slurm (its "Multifactor Priority
// Plugin"); off unless a weight is set. Then, between jobs that partition priority, a class that
// preempts, and the tenants' quota do not tell apart, the sum decides:
//
//   age_weight * min(1, waited / max_age)  +  fairshare_weight * 2^(-usage / share)
//   + job_size_weight * cores / cores of the cluster  +  partition_weight * priority / greatest
//   + class_weight * value / greatest  -  nice
//
// usage and share are the user's parts of all that the tenant uses and has to share out; without a
// tenant nothing is charged and the factor is 1. A priority set by an administrator takes the place
// of the sum. Reckoned for all waiting jobs once every priority_period, as Slurm does; in between
// nothing changes but what comes and goes.
#pragma once

#include "ctld/core/context.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {

// partition priority * kPartitionWeight + (the job's priority, or kDefaultPriority) - nice
inline constexpr std::int64_t kPartitionWeight = 100'000;
inline constexpr std::int64_t kDefaultPriority = 10'000;
std::int64_t priority_of(const State& state, const Job& job);
// Of that, what counts among the jobs of its tenant only: the tenant's own class, and a nice value
// below 0, which `gctl top` gives as well.
std::int64_t own_priority_of(const State& state, const Job& job);

bool weighted(const Config& config);

// As of the last reckoning; none with all weights 0.
std::vector<proto::PriorityTerm> terms_of(const Context& ctx, const Job& job);

// What the scheduler orders by: the same as priority_of() and rank_of() where no weight is set.
std::int64_t priority_now(const Context& ctx, const Job& job);
Rank rank_now(const Context& ctx, const Job& job);

std::optional<Instant> next_reckoning(const Context& ctx);
void reckon(Context& ctx);

}  // namespace gantry::core
