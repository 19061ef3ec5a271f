// Slices of GPUs in a plan: the places kept for jobs that wait for a GPU to become free enough, and
// those to keep from now on. At a job's turn, place.cc decides if it gets a slice now. For jobs
// without one, the planner of slices (mig_plan.h) decides, which empties few GPUs at a time.
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
  // Holds the places that earlier plans keep, until the trial ends.
  SlicePlan(Draft& draft, const Trial& trial);

  // The first job of the turn's line is blocked for lack of free GPUs: perhaps a place can be kept
  // for it.
  void note(const LineTurn& turn);
  // True if the class waits for slices. Then the timeline cannot tell when it can start, and a
  // reservation would only hinder jobs for which places are kept.
  [[nodiscard]] bool waits_for_slices(const JobClass& c) const;
  // Decides for which jobs places are kept from now on; only in a plan that looks at everything.
  void plan();
  // The verdict if the job's place is kept and being emptied; nullopt if it waits for something
  // else.
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
