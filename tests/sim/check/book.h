// The book of tenants: documents, quota, shares and victims, computed from the committed events
// independently of the core.
//
// With each event it checks the following. No job is placed beyond a nominal or borrowing limit,
// into quota that a lending limit keeps (quota_of.h), or beyond a tenant's number of running jobs.
// The charge is price times amount. Documents are changed only by users who may. A preempted job's
// class allows it, the job has run its minimum, was not preempted too often, and gets its class's
// grace. On request it also checks a plan's victims, the core's documents, and its decayed usage
// against the integral over all placements.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ctld/core/event/event.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/state/state.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "tests/sim/check/quota_of.h"
#include "tests/sim/queue.h"
#include "tests/sim/trace.h"

namespace gantry::sim {

struct Account;  // ledger.h

// Returns the tenant that pays in a queue: `main/t1` is the part of tenant t1 in the partition
// main.
std::string payer_of(const std::string& queue);

class Book {
 public:
  Book(const Queue& queue, Trace& trace, const Config& config)
      : queue_(queue), trace_(trace), config_(config) {}

  void take(Instant at, core::EventRef event, const std::map<JobId, Account>& jobs);
  using Least = std::function<Resources(JobId)>;  // returns the least that a waiting job can take
  void check_plan(const sched::Plan& plan, const Least& least) const;
  void compare(const core::State& state);               // compares documents, preemptions, places
  void compare_shares(const core::State& state) const;  // compares with a sum over all placements

  struct Job {
    PartitionId partition{};
    std::string cls, account, user;
    bool may_requeue = true;
    std::uint32_t preemptions = 0;
    Instant placed{};
    bool leaving = false;
    std::map<NodeId, sched::NodeGrant> held;
    std::optional<std::size_t> interval;  // the interval of its leaf, while it holds something
    std::vector<std::string> leaf;
    Instant eligible{}, submitted{};  // as they were when it was placed
  };
  [[nodiscard]] const Job& job(JobId id) const { return jobs_.at(id); }
  [[nodiscard]] std::optional<std::uint32_t> tenant_of(const Job& job) const;
  [[nodiscard]] bool has_tenants() const { return !compiled_->tenants.empty(); }
  [[nodiscard]] const QuotaOf& quota() const { return *quota_; }
  [[nodiscard]] const tenancy::PriorityClass& class_of(const Job& job) const;
  [[nodiscard]] std::uint32_t flavor_of(NodeId node) const;
  [[nodiscard]] Duration longest_grace() const;

  struct Counts {  // counts of the history, for its last line
    std::uint64_t applied = 0, preempted = 0, reclaimed = 0, borrowing = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Interval {
    Instant from{};
    std::optional<Instant> to;
    double rate = 0;
  };
  void applied(const core::event::TenancyApplied& e);
  void may_apply(const core::event::TenancyApplied& e) const;
  void submitted(const core::event::JobSubmitted& e, const Account& account);
  void placed(Instant at, const core::event::JobPlaced& e);
  void preempted(Instant at, const core::event::JobFinishing& e);
  void exited(Instant at, const core::event::NodeExited& e);
  void compile();
  void check_victims(const std::map<std::uint32_t, std::vector<JobId>>& by_tenant,
                     const QuotaOf& used) const;
  [[nodiscard]] Resources taken(const Job& job) const;
  [[nodiscard]] bool takes_within_own(const Job& low, const Job& high, const Resources& least,
                                      const QuotaOf& stays) const;
  [[nodiscard]] QuotaOf staying(const sched::Plan& plan) const;
  [[noreturn]] void broken(const std::string& promise) const {
    trace_.broken(queue_.now(), promise);
  }

  const Queue& queue_;
  Trace& trace_;
  const Config& config_;
  std::vector<core::NodeTraits> nodes_;
  // the tenant or partition of the configuration that pays
  std::map<PartitionId, std::string> payers_;
  core::Documents documents_;
  std::vector<std::string> classes_ = core::new_class_names({}, {});
  std::uint64_t revision_ = 0;
  std::optional<core::CompiledTenancy> compiled_;
  std::optional<QuotaOf> quota_;
  std::map<JobId, Job> jobs_;
  std::map<std::vector<std::string>, std::vector<Interval>> shares_;  // by leaf
  std::vector<JobId> placed_, returned_;                              // since the last compare()
  Counts counts_;
};

}  // namespace gantry::sim
