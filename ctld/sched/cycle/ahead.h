// Reservations ahead: nodes and a start for jobs that must wait, and estimates for further jobs.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "ctld/sched/cycle/book.h"
#include "ctld/sched/cycle/plan_quota.h"
#include "ctld/sched/cycle/search_space.h"
#include "ctld/sched/cycle/slice_plan.h"

namespace gantry::sched {

class Ahead {
 public:
  Ahead(Draft& draft, PlanQuota& quota, SearchSpace& nodes, ReservationBook& book,
        const SlicePlan& slices)
      : d_(draft), quota_(quota), nodes_(nodes), book_(book), slices_(slices) {}

  // The earliest start of the class's next job over its flavors, and the flavor; nullopt if none is
  // known, or none before `before`.
  [[nodiscard]] std::optional<std::pair<Slot, std::uint32_t>> earliest(
      const JobClass& c, Instant before = Timeline::kNever);
  // The turn's job keeps its reservation, gets an earlier one, or a new one if its partition may
  // have one more; then the turn moves on. Returns false if the job has none.
  bool reserve(LineTurn& turn);
  // Finds expected starts of the first blocked jobs, as if every job got a reservation, in order.
  // It decides nothing: the starts of this plan are made before, and nothing stays reserved, so
  // neither verdicts nor the next plan depend on it.
  void estimate(std::span<const LineTurn> closed);

 private:
  Draft& d_;
  PlanQuota& quota_;
  SearchSpace& nodes_;
  ReservationBook& book_;
  const SlicePlan& slices_;
};

}  // namespace gantry::sched
