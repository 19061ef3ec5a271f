// Slices of GPUs in a plan: what is kept for jobs that wait for a GPU to become free enough, and
// for whom to keep what from now on. Who gets a slice now is decided at each job's turn (place.cc);
// whoever has none then is the planner's (mig_plan.h), which empties few GPUs at a time.
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
  // Holds the places that former plans keep, for the time of the trial.
  SlicePlan(Draft& draft, const Trial& trial);

  // The head of the turn's line is blocked for want of room: perhaps a place can be kept for it.
  void note(const LineTurn& turn);
  // Is it slices that the class waits for? Then no time of the timeline says when it can start, and
  // a reservation would only be in the way of those for whom places are kept.
  [[nodiscard]] bool waits_for_slices(const JobClass& c) const;
  // For whom places are kept from now on; only in a plan that looks at everything.
  void plan();
  // The job's place is kept and being emptied. Once it is empty, the job waits for something else.
  [[nodiscard]] std::optional<Verdict> explain(JobId job) const;

 private:
  [[nodiscard]] std::vector<MigUsed> used_on(std::uint32_t node, std::size_t gpu) const;
  [[nodiscard]] MigView view_slices(
      std::vector<std::pair<std::uint32_t, std::size_t>>& places) const;
  void add_wants(const JobClass& c, MigView& view) const;
  void ask(MigView& view);

  Draft& d_;
  const Trial& trial_;
  std::vector<LineTurn> waiters_;  // lines blocked for want of slices, in order
};

}  // namespace gantry::sched
