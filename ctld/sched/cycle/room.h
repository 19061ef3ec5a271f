// Room made by preemption: every line takes back what is guaranteed to its tenant, and jobs whose
// class preempts take from lower ones. Who must go: victim_search.h.
//
// A claim is a reservation that names its victims: from the moment it is made the nodes are
// reserved for the time when they have gone, and what the job takes is charged to its tenant. So a
// tenant claims as much as is guaranteed to it, in the order of its jobs, and not more. A claim to
// guaranteed quota goes before what is reserved for others who have not claimed theirs (they
// borrow, or nobody's leaving makes a place for them): where that is in its way it is broken, and
// if it is all that is in the way, the job starts at once. Only what is reserved for a job that has
// waited for so long that its rank was raised stays where it is.
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

  // For the job of the turn, which is blocked. True: it starts or has a claim, and the turn has
  // moved on.
  bool make_room(LineTurn& turn);

 private:
  bool take(LineTurn& turn, const Taking& taking);
  bool start_on(LineTurn& turn, const Taking& taking);
  bool claim(LineTurn& turn, const Taking& taking, Instant free_by);
  void ask_to_leave(const VictimSet& set, Instant by);
  void take_back_asking(std::size_t until);  // so many stay asked

  Draft& d_;
  Trial& trial_;
  PlanQuota& quota_;
  ReservationBook& book_;
  Ahead& ahead_;
  Starter& starter_;
  VictimSearch& victims_;
};

}  // namespace gantry::sched
