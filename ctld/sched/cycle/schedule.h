// The scheduler: a pure function from a view to a plan.
//
// schedule(view, now, policy) depends on nothing else: no clock, no thread, no order of a hash
// table; its budget is counted in placement attempts, so a run can be reproduced. It tries
// placements in the replica and puts them back before it returns. What stays there is listed in
// left.h; without keep_reservations, only claims stay of the reservations that it made
// (reservations.h).
#pragma once

#include "ctld/sched/cycle/replica.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"

namespace gantry::sched {

Plan schedule(Replica& replica, Instant now, const Policy& policy);

}  // namespace gantry::sched
