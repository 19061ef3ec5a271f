// The limits on what a plan may cost, and which of the policies are on.
#pragma once

#include <cstdint>

#include "common/time/time.h"

namespace gantry::sched {

inline constexpr Duration kBalanceAll{std::int64_t{1} << 62};

struct Policy {
  std::uint64_t attempts = 100'000;     // placement attempts that a plan may make
  std::uint32_t starts = 4'096;         // starts that a plan may propose
  std::uint32_t reservations = 1;       // per partition, for its first blocked jobs; 1 = EASY
  std::uint32_t ahead = 0;              // reservations for the first blocked jobs of all partitions
  std::uint32_t depth = 1'000;          // lines examined after the first blocked job
  std::uint32_t estimates = 0;          // blocked jobs that get an expected start
  std::uint32_t replans = 100;          // reservations for which an earlier start is tried,
  std::uint64_t replan_steps = 16'384;  // as long as the plan has examined fewer ends than this
  std::uint32_t searches = 16;          // searches for victims in one plan
  Duration search_pause = seconds(1);   // a class without victims is searched again after this time

  // Each of these policies for several tenants can be off. Without tenants they change nothing.
  bool quota = true;
  bool fair_share = true;  // Tenancy::fair_share must be on as well
  bool preemption = true;
  bool keep_reservations = false;  // false: every plan makes all reservations again

  // Borrowers of one priority class may preempt each other by their shares. This is the most run
  // time (since its last checkpoint) that a victim may lose. 0: no such preemption; kBalanceAll: no
  // limit.
  Duration balance{};

  bool verdicts = true;  // a plan says why jobs wait; false: it only starts, preempts and reserves

  // If reservations are kept, a plan looks at everything only once in this time; the plans in
  // between look at what the changes since the last plan can have made possible. 0: every plan
  // looks at everything.
  Duration everything{};

  friend bool operator==(const Policy&, const Policy&) = default;
};

}  // namespace gantry::sched
