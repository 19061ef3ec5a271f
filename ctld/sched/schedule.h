// The scheduler: a pure function from a view to a plan.
//
// schedule(view, now, policy) depends on nothing else: no clock, no thread, no order of a hash
// table; its budget is counted in placement attempts, so a run can be reproduced. It tries
// placements in the replica and puts them back before it returns, so the replica is as it was.
#pragma once

#include "ctld/sched/plan.h"
#include "ctld/sched/replica.h"

namespace gantry::sched {

struct Policy {
  std::uint64_t attempts = 100'000;  // placement attempts a plan may take
  std::uint32_t starts = 4'096;      // a plan proposes at most
  std::uint32_t reservations = 1;    // ahead, per partition; 1 is EASY, no limit conservative
  std::uint32_t depth = 1'000;       // classes looked at behind the first blocked job
  std::uint32_t estimates = 0;       // blocked jobs to say an expected start for
};

Plan schedule(Replica& replica, Instant now, const Policy& policy);

}  // namespace gantry::sched
