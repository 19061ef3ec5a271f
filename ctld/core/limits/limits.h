// Limits of use: of QOS (priority classes) and of associations (tenants, their projects, users in
// these), as Slurm has them.
//
// A limit of the partition's QOS goes before one of the job's QOS (the other way round if that has
// the flag OverPartQOS), and both go before those of associations. A waiting job is counted by what
// it asks for, a placed job by what it got. A job that would exceed a limit waits. A submit that
// would exceed a limit on the number of submitted jobs is refused; so is, under a QOS with
// DenyOnLimit, a job that could never start within the limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/job/job_shape.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/tenancy/use_limits.h"
#include "ctld/core/context.h"
#include "ctld/core/state/use_state.h"

namespace gantry::core {

struct HeldTres;
struct Partition;

// The limits of a QOS, or of an association.
struct LimitSubject {
  bool qos = false;
  std::string name;  // for people: "QOS high", "user ann in account physics"
  const tenancy::UseLimits* limits = nullptr;
  std::uint32_t index = 0;              // index of the QOS
  std::optional<sched::ShareId> share;  // share of the association; unset: no job of it has run
  // For an account, the shares of the accounts below it; their use is also its use.
  std::vector<sched::ShareId> below{};
};

// What a job would count for limits of use.
struct UseDemand {
  UseKey key;
  std::string user;
  std::string tenant, account;
  tenancy::TresAmounts job, node;  // of the whole job, and on each node
  std::optional<Duration> limit;
  std::vector<std::string> required_nodes;
};
UseDemand demand_of(const State& state, const Job& job);
// By shape alone: key, user, account and limit stay unset.
UseDemand demand_of_shape(const JobShape& shape, const Partition& queue);
// For a job that is being submitted.
UseDemand demand_of_submit(const State& state, const Owner& owner, const Partition& queue,
                           const JobSpec& spec, std::optional<Duration> limit);

// The subjects whose limits apply to the job, in the order in which they are checked.
std::vector<LimitSubject> subjects_of(const State& state, const UseDemand& demand);

// Why a waiting job may not start; unset if no limit prevents it.
std::optional<Verdict> verdict_of_limits(const State& state, const Job& job, Instant now);

// Checks a submit of this many jobs (tasks of an array) at once.
Result<void> check_use_limits(const Context& ctx, const UseDemand& demand, std::uint64_t jobs);
// The time limit of a job that names none: the longest that a QOS or an association allows, if one
// sets it.
std::optional<Duration> longest_wall(const State& state, const UseDemand& demand);

// What a job that gets these grants will count for limits of use.
UseOfJob use_of_job(const State& state, const Job& job,
                    const std::vector<sched::NodeGrant>& grants);

// The index of the QOS of a partition; unset if it has none.
std::optional<std::uint32_t> partition_qos(const State& state, const Partition& partition);

// Sets share and `below` of the subject of an account, or of a user in one.
void find_shares(const State& state, const tenancy::Tenant& tenant, const std::string& account,
                 const std::string& user, LimitSubject& subject);
// The keys of the subject's records of use.
std::vector<std::string> records_of(const State& state, const LimitSubject& subject);
// Seconds of one TRES, or of wall time if `tres` is "", that the subject has used up at `now`.
double used_by(const State& state, const LimitSubject& subject, const std::string& tres,
               Instant now);

// What running jobs of the subject hold, and what it has left to use up.
UseSum sum_of(const State& state, const LimitSubject& subject);
void add_use(const UseSum& part, UseSum& sum);
// The node of the share tree. Without a user, an account named like the tenant is the tenant
// itself. Unset if no job of it has run.
std::optional<sched::ShareId> share_of(const State& state, const std::string& tenant,
                                       const std::string& account, const std::string& user);
UseSum sum_of_user(const State& state, std::uint32_t qos, Uid uid);
double running_seconds(const HeldTres& held, Instant now);

}  // namespace gantry::core
