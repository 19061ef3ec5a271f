// One plan, step by step. README.md draws the steps and says where each is. Whose turn it is:
// order.h; where a job fits: place.h; when: timeline.h and walk.h; who must go: preempt.h.
#include "ctld/sched/cycle/schedule.h"

#include "ctld/sched/cycle/cycle.h"

namespace gantry::sched {

Plan schedule(Replica& replica, Instant now, const Policy& policy) {
  Cycle cycle(replica, now, policy);

  // Waiting jobs in order: partition, rank, not borrowing before borrowing, the tenant's share,
  // fair share inside the tenant, job priority, time in the queue, id.
  while (auto turn = cycle.next_turn()) {
    // Place now: within the tenant's quota, on what is free and what no plan needs while the job
    // runs. For a job behind the first blocked one of its partition this is the backfill.
    bool more = !turn->head && cycle.place_now(*turn);

    // Make room: the first blocked job of a tenant takes back what is guaranteed to it from those
    // who borrow it, and a class that preempts takes from lower ones.
    if (!more) more = cycle.make_room(*turn);

    // Reserve ahead: the first blocked jobs of each partition get nodes and a time, which
    // everything after them respects. The other jobs of their line are blocked as they are.
    if (!more) more = cycle.reserve_ahead(*turn);

    if (more)
      cycle.again(*turn);
    else
      cycle.close(*turn);
  }

  // Slices: which GPUs are emptied for jobs that find no room for theirs.
  cycle.plan_slices();

  // Verdicts: why each class waits, and when its first jobs may expect to start.
  cycle.estimate();
  cycle.explain();
  return cycle.take_plan();
}

}  // namespace gantry::sched
