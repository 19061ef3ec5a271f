// Makes one plan, step by step. README.md draws the steps and says where each is. order.h says
// which job comes next, place.h where it fits, timeline.h and walk.h when, preempt.h which jobs
// must leave.
#include "ctld/sched/cycle/schedule.h"

#include "ctld/sched/cycle/cycle.h"

namespace gantry::sched {

Plan schedule(Replica& replica, Instant now, const Policy& policy) {
  Cycle cycle(replica, now, policy);

  // Waiting jobs come in order: partition, rank, not borrowing before borrowing, the tenant's
  // share, fair share inside the tenant, job priority, time in the queue, id.
  while (auto turn = cycle.next_turn()) {
    // Place now: within the tenant's quota, on resources that are free and that no reservation
    // needs while the job runs. For a job after the first blocked one of its partition this is
    // backfill.
    bool more = !turn->head && cycle.place_now(*turn);

    // Make room: the first blocked job of a tenant takes back what is guaranteed to it from tenants
    // that borrow it, and a class that preempts takes from lower ones.
    if (!more) more = cycle.make_room(*turn);

    // Reserve ahead: the first blocked jobs of each partition get nodes and a time, which
    // everything after them respects. The other jobs of their line (jobs of one class and one user)
    // wait for the same reason.
    if (!more) more = cycle.reserve_ahead(*turn);

    if (more)
      cycle.again(*turn);
    else
      cycle.close(*turn);
  }

  // Slices: GPUs are emptied for jobs that find no place for their slices.
  cycle.plan_slices();

  // Verdicts: the plan says why each class waits, and when its first jobs may expect to start.
  cycle.estimate();
  cycle.explain();
  return cycle.take_plan();
}

}  // namespace gantry::sched
