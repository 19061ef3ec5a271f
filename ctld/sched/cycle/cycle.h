// The loop over turns that makes one plan. Each step is a type of its own with its own contract
// (README.md); here is only the order of the steps, and which lines are done.
#pragma once

#include <optional>
#include <vector>

#include "ctld/sched/cycle/ahead.h"
#include "ctld/sched/cycle/awake.h"
#include "ctld/sched/cycle/former.h"
#include "ctld/sched/cycle/het.h"
#include "ctld/sched/cycle/replica.h"
#include "ctld/sched/cycle/room.h"
#include "ctld/sched/cycle/verdicts.h"

namespace gantry::sched {

class Cycle {
 public:
  // When the cycle ends the view is as it was, except for what plans leave (left.h).
  Cycle(Replica& replica, Instant now, const Policy& policy);
  Cycle(const Cycle&) = delete;
  Cycle& operator=(const Cycle&) = delete;

  // ---- in order: the line whose first job comes next; nullopt when none is left, or the budget is
  // spent, or it would be too deep behind the first blocked job.
  std::optional<LineTurn> next_turn();
  void again(const LineTurn& turn);  // the line has more jobs
  void close(const LineTurn& turn);  // its other jobs wait as well

  // ---- place now, make room, reserve ahead. Each moves the turn to its next job when it succeeds.
  bool place_now(LineTurn& turn);
  bool make_room(LineTurn& turn) { return room_.make_room(turn); }
  bool reserve_ahead(LineTurn& turn);

  void plan_slices() { slices_.plan(); }
  void estimate();  // expected starts of the first blocked jobs
  void explain();   // a verdict for every class that was looked at

  Plan take_plan();  // also keeps its reservations

 private:
  void begin_order(const std::vector<std::uint32_t>& partitions,
                   std::optional<Order::Passing> passing);
  void no_more_turns();
  bool settle(LineTurn& turn);  // plans ahead for a job that was not started, and moves the turn on
  void note_step(const LineTurn& turn);
  [[nodiscard]] HetSteps het_steps() {
    return {d_, quota_, nodes_, book_, former_, starter_, awake_};
  }

  // Starts the turn's job and returns nullopt, or returns why it cannot start.
  std::optional<Blocked> try_now(LineTurn& turn);
  std::optional<Blocked> try_before_others(LineTurn& turn);
  std::optional<Blocked> try_choice(LineTurn& turn, std::uint32_t tenant, const NodeChoice& choice);
  std::optional<std::vector<Share>> place_within_quota(const LineTurn& turn, std::uint32_t tenant,
                                                       const NodeChoice& choice);
  [[nodiscard]] bool has_room_on(const JobClass& c, const Reservation& reservation) const;
  void put_back(const JobClass& c, const Reservation& reservation);
  void start(LineTurn& turn, const std::vector<Share>& place);

  Draft d_;
  Trial trial_;
  PlanQuota quota_;
  SlicePlan slices_;
  SearchSpace nodes_;
  ReservationBook book_;
  Starter starter_;
  FormerReservations former_;
  Awake awake_;
  Ahead ahead_;
  VictimSearch victims_;
  RoomMaker room_;
  Verdicts verdicts_;
  std::vector<LineTurn> closed_;  // lines whose remaining jobs all wait
};

}  // namespace gantry::sched
