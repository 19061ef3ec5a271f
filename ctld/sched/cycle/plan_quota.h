// Quota in a plan: what its jobs take, whether a job's tenant may have that much, and from when on.
//
// What the plan starts, and what it reserves for jobs that wait for victims to leave, is charged to
// the tenants in the view's tree until the plan is made. Without quota (no tree, or the policy
// switches it off) tenant_of() is kNoIndex for all, and only fair share is charged.
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
  // The quota node of the partition, or of the class's partition; kNoIndex: no quota.
  [[nodiscard]] std::uint32_t tenant_of(PartitionId partition) const;
  [[nodiscard]] std::uint32_t tenant_of(const JobClass& c) const {
    return tenant_of(c.key.partition);
  }
  // The standing of a class in the order: by the flavor in which it borrows least.
  [[nodiscard]] QuotaStanding standing(std::uint32_t partition, std::uint32_t class_index);

  // ---- jobs of a tenant at once: those that run, and those that this plan has started
  [[nodiscard]] std::uint32_t jobs_of(std::uint32_t tenant) const;
  // True if the tenant may have one more job in addition to this number of others.
  [[nodiscard]] bool has_job_left(std::uint32_t tenant, std::int64_t beside = 0) const;
  void started(std::uint32_t tenant);  // counts one more job of the tenant

  // ---- amounts
  // The amounts that a job of the class takes on these nodes, by flavor.
  [[nodiscard]] std::vector<QuotaNeed> needs_of(const JobClass& c,
                                                const std::vector<Share>& shares) const;
  // The fit of the first need that does not fit the quota; if all fit, that of the last one.
  [[nodiscard]] QuotaFit fit(std::uint32_t tenant, const std::vector<QuotaNeed>& needs) const;
  // True if the least need of the job is within what is guaranteed to its tenant, or to a cohort of
  // the tenant.
  [[nodiscard]] bool is_guaranteed(const JobClass& c, std::uint32_t flavor) const;
  // Charges until the plan is made, or until uncharge(). Fair share counts the charge as well, and
  // uncharge() does not change that.
  void charge(const Waiting& w, const JobClass& c, const std::vector<QuotaNeed>& needs);
  void uncharge(JobId job);
  [[nodiscard]] const std::vector<Charged>& charged() const { return charged_; }

  // ---- time
  // When the need will fit, by the limits of running jobs: now at the earliest; nullopt: never, or
  // it is not known. Starts of this plan count as if they did not end.
  std::optional<Instant> ready(std::uint32_t tenant, const QuotaNeed& need);
  void ends_changed() { endings_.clear(); }  // call it when the jobs in the trial have changed

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
  std::unordered_map<std::uint32_t, std::uint32_t> starts_;  // charged by this plan, by quota node
  std::unordered_map<std::uint32_t, std::vector<Ending>> endings_;  // by quota node
};

}  // namespace gantry::sched
