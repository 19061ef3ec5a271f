// Quota in a plan: what its jobs take, whether a job's tenant may have as much, and when it will.
//
// What the plan starts, and what its claims hold for jobs that wait for others to leave, is charged
// to the tenants in the view's tree until the plan is made. Without quota (no tree, or switched off
// by the policy) tenant_of() is kNoIndex for all, and nothing is charged but fair share.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ctld/sched/cycle/draft.h"
#include "ctld/sched/cycle/trial.h"

namespace gantry::sched {

class PlanQuota {
 public:
  PlanQuota(Draft& draft, const Trial& trial);
  ~PlanQuota();  // takes back all charges
  PlanQuota(const PlanQuota&) = delete;
  PlanQuota& operator=(const PlanQuota&) = delete;

  struct Charged {
    JobId job;
    std::uint32_t tenant;
    QuotaNeed need;
  };

  [[nodiscard]] bool on() const { return on_; }
  // The quota node of the partition, or of the class's; kNoIndex: no quota.
  [[nodiscard]] std::uint32_t tenant_of(PartitionId partition) const;
  [[nodiscard]] std::uint32_t tenant_of(const JobClass& c) const {
    return tenant_of(c.key.partition);
  }
  // How the best job of a class stands for the order: in the flavor in which it borrows least.
  [[nodiscard]] QuotaStanding standing(std::uint32_t partition, std::uint32_t class_index);

  // ---- jobs of a tenant at once: what runs, and what this plan has started
  [[nodiscard]] std::uint32_t jobs_of(std::uint32_t tenant) const;
  // May it have one more, beside so many others?
  [[nodiscard]] bool has_job_left(std::uint32_t tenant, std::int64_t beside = 0) const;
  void started(std::uint32_t tenant);  // one more runs

  // ---- amounts
  // What a job of the class takes on these nodes, by flavor.
  [[nodiscard]] std::vector<QuotaNeed> needs_of(const JobClass& c,
                                                const std::vector<Share>& shares) const;
  // How all of these needs stand to the quota, or the first of them that does not fit.
  [[nodiscard]] QuotaFit fit(std::uint32_t tenant, const std::vector<QuotaNeed>& needs) const;
  // Its least need is within what is guaranteed to its tenant, or to a cohort that contains it.
  [[nodiscard]] bool is_guaranteed(const JobClass& c, std::uint32_t flavor) const;
  // Until the plan is made, or uncharge(). Fair share counts it as well, and never takes it back.
  void charge(const Waiting& w, const JobClass& c, const std::vector<QuotaNeed>& needs);
  void uncharge(JobId job);
  [[nodiscard]] const std::vector<Charged>& charged() const { return charged_; }

  // ---- time
  // When the need will fit, going by the limits of what runs: now at the earliest; nullopt: never,
  // or not that anybody knows. Starts of this plan are taken to last.
  std::optional<Instant> ready(std::uint32_t tenant, const QuotaNeed& need);
  void ends_changed() { endings_.clear(); }  // the trial has asked somebody to leave, or not

 private:
  struct Ending {
    Instant at;
    JobId job;
    std::uint32_t tenant;
  };
  std::optional<Instant> ready(std::uint32_t tenant, const QuotaNeed& need, QuotaFit fit,
                               std::uint32_t top);
  const std::vector<Ending>& ends_below(std::uint32_t node);

  Draft& d_;
  const Trial& trial_;
  const bool on_;
  std::vector<Charged> charged_;
  std::unordered_map<std::uint32_t, std::uint32_t> starts_;         // of this plan, by quota node
  std::unordered_map<std::uint32_t, std::vector<Ending>> endings_;  // by quota node
};

}  // namespace gantry::sched
