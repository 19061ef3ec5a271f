// The policy of the controller. The simulator also uses it, in histories without tenants.
#pragma once

#include "ctld/sched/policy.h"

namespace gantry::sched {

inline constexpr std::uint32_t kPlannedAhead = 100;        // reservations for blocked jobs
inline constexpr Duration kLookAtEverything = seconds(1);  // see Policy::everything

// The arguments are backfill_depth and balance of gantry.yaml.
inline Policy controller_policy(std::uint32_t depth, Duration balance = {}) {
  Policy policy;
  policy.balance = balance;
  policy.depth = depth;
  policy.keep_reservations = true;
  policy.ahead = kPlannedAhead;
  policy.everything = kLookAtEverything;
  return policy;
}

}  // namespace gantry::sched
