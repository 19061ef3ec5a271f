// Preemption: every line takes back what is guaranteed to its tenant, and jobs whose class preempts
// take from lower classes. The victims are found by victim_search.h.
//
// A claim is a reservation that names its victims: from the moment it is made, its nodes are
// reserved for the time when they have left, and what the job takes is charged to its tenant. So a
// tenant claims as much as is guaranteed to it, in the order of its jobs, and not more. A claim of
// guaranteed quota precedes the reservations of jobs that have not claimed theirs (because they
// borrow, or because no victims would make a place for them): a reservation that blocks it is
// dropped, and if only reservations block it, the job starts at once. Only the reservation of a job
// that has waited for so long that its rank was raised is kept.
#pragma once

#include "ctld/sched/cycle/ahead.h"
#include "ctld/sched/cycle/starter.h"
#include "ctld/sched/cycle/victim_search.h"

namespace gantry::sched {

class RoomMaker {
 public:
  RoomMaker(Draft& draft, Trial& trial, PlanQuota& quota, ReservationBook& book, Ahead& ahead,
            Starter& starter, VictimSearch& victims)
      : d_(draft),
        trial_(trial),
        quota_(quota),
        book_(book),
        ahead_(ahead),
        starter_(starter),
        victims_(victims) {}

  // Makes room for the turn's job, which is blocked. Returns true if the job starts or has a claim,
  // and the turn has moved on.
  bool make_room(LineTurn& turn);

 private:
  bool take(LineTurn& turn, const Taking& taking);
  bool start_on(LineTurn& turn, const Taking& taking);
  bool claim(LineTurn& turn, const Taking& taking, Instant free_by);
  void ask_to_leave(const VictimSet& set, Instant by);
  void take_back_asking(std::size_t until);  // keeps the first `until` preempted jobs in the trial

  Draft& d_;
  Trial& trial_;
  PlanQuota& quota_;
  ReservationBook& book_;
  Ahead& ahead_;
  Starter& starter_;
  VictimSearch& victims_;
};

}  // namespace gantry::sched
