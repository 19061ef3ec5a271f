// Starts a job in the plan: takes its nodes in the trial, charges it, and enters it into the plan.
#pragma once

#include <vector>

#include "ctld/sched/cycle/plan_quota.h"
#include "ctld/sched/cycle/trial.h"

namespace gantry::sched {

class Starter {
 public:
  Starter(Draft& draft, Trial& trial, PlanQuota& quota) : d_(draft), trial_(trial), quota_(quota) {}

  // Starts a job; of an array, one element. The nodes must be free, with devices, CPUs and quota
  // for it.
  void start(const JobClass& c, std::uint32_t slot, const std::vector<Share>& shares);
  // Starts the job of the turn, which moves on to the next job or element.
  void start(LineTurn& turn, const std::vector<Share>& shares);

 private:
  // For a job that allows a lower limit than it asks for: the longest limit for which the place is
  // free; else the job's limit.
  [[nodiscard]] std::optional<Duration> limit_for(const JobClass& c,
                                                  const std::vector<Share>& shares) const;
  Draft& d_;
  Trial& trial_;
  PlanQuota& quota_;
};

}  // namespace gantry::sched
