// What a plan may cost, and which of the policies are on.
#pragma once

#include <cstdint>

#include "common/time/time.h"

namespace gantry::sched {

inline constexpr Duration kBalanceAll{std::int64_t{1} << 62};

struct Policy {
  std::uint64_t attempts = 100'000;     // placement attempts a plan may take
  std::uint32_t starts = 4'096;         // a plan proposes at most
  std::uint32_t reservations = 1;       // ahead, per partition; 1 is EASY, no limit conservative
  std::uint32_t ahead = 0;              // and for so many of the first blocked jobs of all
  std::uint32_t depth = 1'000;          // lines looked at behind the first blocked job
  std::uint32_t estimates = 0;          // blocked jobs to say an expected start for
  std::uint32_t replans = 100;          // reservations looked at for an earlier start,
  std::uint64_t replan_steps = 16'384;  // while a plan has looked at fewer ends than this
  std::uint32_t searches = 16;          // for victims
  Duration search_pause = seconds(1);   // a class for which there were no victims asks again

  // Each of the policies of many tenants can be off; without tenancy they change nothing.
  bool quota = true;
  bool fair_share = true;  // Tenancy::fair_share as well
  bool preemption = true;
  bool keep_reservations = false;  // from plan to plan; otherwise all are made anew

  // Between borrowers of one class, by their shares: the most that a job may lose of what it has
  // run (since its last checkpoint). 0: nobody leaves for that; kBalanceAll: no matter how much.
  Duration balance{};

  bool verdicts = true;  // a plan says why jobs wait; without, it only starts, asks and reserves

  // If reservations are kept, only so often everything is looked at; plans in between look at what
  // the changes since the last one can have made possible. 0: always everything.
  Duration everything{};

  friend bool operator==(const Policy&, const Policy&) = default;
};

}  // namespace gantry::sched
