// One plan, step by step. Steps are in cycle.cc (turns, places, reservations) and explain.cc
// (verdicts, expected starts); where a job fits is place.cc, when it fits timeline.cc and walk.cc.
#include "ctld/sched/schedule.h"

#include "ctld/sched/cycle.h"

namespace gantry::sched {

Plan schedule(Replica& replica, Instant now, const Policy& policy) {
  Cycle cycle(replica, now, policy);

  // Eligible classes by priority: partition, job priority, time in the queue, id.
  while (auto turn = cycle.next_turn()) {
    // Place now: on what is free and what no reservation needs while the job runs. For a job behind
    // the first blocked one of its partition this is the backfill.
    bool more = !turn->head && cycle.place_now(*turn);

    // Reserve ahead: the first blocked jobs of each partition get nodes and a time, which
    // everything after them respects. The other jobs of their class are blocked as they are.
    if (!more) more = cycle.reserve_ahead(*turn);

    if (more)
      cycle.again(*turn);
    else
      cycle.close(*turn);
  }

  // Verdicts: why each class waits, and when its first jobs may expect to start.
  cycle.estimate();
  cycle.explain();
  return cycle.take_plan();
}

}  // namespace gantry::sched
