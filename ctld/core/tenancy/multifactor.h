// Weighted multifactor priority, for sites that come from Slurm (its "Multifactor Priority
// Plugin"). It is off unless a weight is set. With a weight, the following sum decides between jobs
// that are equal in partition priority, preempting class and the tenants' quota:
//
//   age_weight * min(1, waited / max_age)  +  fairshare_weight * 2^(-usage / share)
//   + job_size_weight * cores / cores of the cluster  +  partition_weight * priority / greatest
//   + class_weight * value / greatest  -  nice
//
// usage and share are the user's fractions of all that the tenant uses and of all its shares.
// Without a tenant nothing is charged, and the factor is 1. A priority that an administrator set
// replaces the sum. The sums of all waiting jobs are computed once every priority_period, as in
// Slurm; in between only new or changed jobs get a new sum.
#pragma once

#include "common/proto/tenancy_view.h"
#include "ctld/core/context.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {

struct Partition;

// partition priority * kPartitionWeight + (the job's priority, or kDefaultPriority)
// + the value of the tenant's own class that the job names - nice
inline constexpr std::int64_t kPartitionWeight = 100'000;
inline constexpr std::int64_t kDefaultPriority = 10'000;
std::int64_t priority_of(const State& state, const Job& job);
// The part of priority_of() that counts only among jobs of the same tenant: the tenant's own class,
// and a nice value below 0, which `gctl top` can give too.
std::int64_t own_priority_of(const State& state, const Job& job);

bool weighted(const Config& config);

// The terms of the sum as last computed; none if all weights are 0. Without a job: the factors that
// have a weight, without values and points.
std::vector<proto::PriorityTerm> weights_of(const Context& ctx);
std::vector<proto::PriorityTerm> terms_of(const Context& ctx, const Job& job);

// The scheduler orders jobs by these two. Without weights they are priority_of() and rank_of().
std::int64_t priority_now(const Context& ctx, const Job& job);
// The same as if the job were in this queue of its tenant.
std::int64_t priority_in(const Context& ctx, const Job& job, const Partition& queue);
Rank rank_now(const Context& ctx, const Job& job);

std::optional<Instant> next_reckoning(const Context& ctx);
void reckon(Context& ctx);

}  // namespace gantry::core
