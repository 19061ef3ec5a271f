// The scheduler: a pure function from a view to a plan.
//
// schedule(view, now, policy) depends on nothing else: no clock, no thread, no order of a hash
// table; its budget is counted in placement attempts, so a run can be reproduced. It tries
// placements in the replica and undoes them before it returns. left.h lists what stays there;
// without keep_reservations, of its reservations only claims stay (reservations.h).
#pragma once

#include "ctld/sched/cycle/replica.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"

namespace gantry::sched {

Plan schedule(Replica& replica, Instant now, const Policy& policy);

}  // namespace gantry::sched
