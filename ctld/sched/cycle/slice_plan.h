// Slices of GPUs in a plan: the places kept for jobs that wait for a GPU to become free enough, and
// those to keep from now on. At each job's turn it is decided if it gets a slice now (place.cc);
// jobs without one are left to the planner (mig_plan.h), which empties few GPUs at a time.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ctld/sched/cycle/draft.h"
#include "ctld/sched/cycle/trial.h"
#include "ctld/sched/gpu/mig_plan.h"

namespace gantry::sched {

class SlicePlan {
 public:
  // Holds the places that former plans keep, as long as the trial lasts.
  SlicePlan(Draft& draft, const Trial& trial);

  // The head of the turn's line is blocked for lack of room: perhaps a place can be kept for it.
  void note(const LineTurn& turn);
  // True if the class waits for slices. Then no time of the timeline says when it can start, and a
  // reservation would only be in the way of jobs for which places are kept.
  [[nodiscard]] bool waits_for_slices(const JobClass& c) const;
  // Decides for which jobs places are kept from now on; only in a plan that looks at everything.
  void plan();
  // The verdict if the job's place is kept and being emptied; nullopt: it waits for something else.
  [[nodiscard]] std::optional<Verdict> explain(JobId job) const;

 private:
  [[nodiscard]] std::vector<MigUsed> used_on(std::uint32_t node, std::size_t gpu) const;
  [[nodiscard]] MigView view_slices(
      std::vector<std::pair<std::uint32_t, std::size_t>>& places) const;
  void add_wants(const JobClass& c, MigView& view) const;
  void ask(MigView& view);

  Draft& d_;
  const Trial& trial_;
  std::vector<LineTurn> waiters_;  // lines blocked for lack of slices, in order
};

}  // namespace gantry::sched
