// Limits of use: of QOS (priority classes) and of associations (tenants, their projects, users in
// these), as Slurm has them.
//
// A limit of the partition's QOS goes before one of the job's QOS (the other way round if that has
// the flag OverPartQOS), and both go before those of associations. What a job would count is what
// it asks for; what it counts once placed is what it got. A job that would be over a limit waits;
// one that would be over a number of jobs submitted is refused, and so is, for a QOS with
// DenyOnLimit, one that could never start within the limits.
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
  std::uint32_t index = 0;              // of the QOS
  std::optional<sched::ShareId> share;  // of the association; unset: no job of it has run
  // An account has here the shares of the accounts below it, whose use is also its use.
  std::vector<sched::ShareId> below{};
};

// What would count of a job.
struct UseDemand {
  UseKey key;
  std::string user;
  std::string tenant, account;
  tenancy::TresAmounts job, node;  // of the whole job, on each node
  std::optional<Duration> limit;
  std::vector<std::string> required_nodes;
};
UseDemand demand_of(const State& state, const Job& job);
// Without key, user, account and limit.
UseDemand demand_of_shape(const JobShape& shape, const Partition& queue);
// Of a job that is being submitted.
UseDemand demand_of_submit(const State& state, const Owner& owner, const Partition& queue,
                           const JobSpec& spec, std::optional<Duration> limit);

// The subjects whose limits the job keeps, in the order in which they count.
std::vector<LimitSubject> subjects_of(const State& state, const UseDemand& demand);

// Why a waiting job may not start; unset: no limit is in its way.
std::optional<Verdict> verdict_of_limits(const State& state, const Job& job, Instant now);

// For a submit of so many jobs (tasks of an array) at once.
Result<void> check_use_limits(const Context& ctx, const UseDemand& demand, std::uint64_t jobs);
// The time limit of a job that names none, where a QOS or an association has the longest one.
std::optional<Duration> longest_wall(const State& state, const UseDemand& demand);

// What a job that gets these grants will count.
UseOfJob use_of_job(const State& state, const Job& job,
                    const std::vector<sched::NodeGrant>& grants);

// The index of the QOS of a partition; unset: it has none.
std::optional<std::uint32_t> partition_qos(const State& state, const Partition& partition);

// Sets share and `below` of the subject of an account, or of a user in one.
void find_shares(const State& state, const tenancy::Tenant& tenant, const std::string& account,
                 const std::string& user, LimitSubject& subject);
// The keys of the subject's records of use.
std::vector<std::string> records_of(const State& state, const LimitSubject& subject);
// Seconds of one TRES, or of wall time if `tres` is "", that the subject has used up at `now`.
double used_by(const State& state, const LimitSubject& subject, const std::string& tres,
               Instant now);

// What running jobs of the subject hold, and what may still be used up.
UseSum sum_of(const State& state, const LimitSubject& subject);
void add_use(const UseSum& part, UseSum& sum);
// The node of the share tree; an account that is the tenant without a user is the tenant itself.
// Unset: no job of it has run.
std::optional<sched::ShareId> share_of(const State& state, const std::string& tenant,
                                       const std::string& account, const std::string& user);
UseSum sum_of_user(const State& state, std::uint32_t qos, Uid uid);
double running_seconds(const HeldTres& held, Instant now);

}  // namespace gantry::core
