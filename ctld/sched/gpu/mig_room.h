// One GPU in time: what is in use on it and until when, what is kept for whom from when on, and so
// what somebody else may have there. Shared by the planner (mig_board.h) and by the placement of
// jobs (mig_node.h).
#pragma once

#include <cstdint>
#include <span>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/sched/gpu/mig.h"

namespace gantry::sched {

// An end of time for those who have none.
inline constexpr Instant kMigNever{INT64_MAX};

constexpr std::uint64_t mig_bit(MigPlacementId p) {
  return std::uint64_t{1} << p;
}

struct MigUsed {  // in use, failed or claimed
  MigPlacementId at = 0;
  Instant until{};  // kMigNever: not known; always after now
  bool failed = false;
};
struct MigReserved {
  JobId job;
  MigPlacementId at = 0;
  Instant from{};  // kMigNever: not known
};

// What is left at `t`, with these placements (as bits) besides; kNoMigState if the two are in each
// other's way.
MigState mig_state_at(const MigTable& table, std::span<const MigUsed> used, Instant t,
                      std::uint64_t also);

// Is somebody in these places until `end` in nobody's way for whom something is kept? At each time
// when something is kept for, the places must be legal beside it.
bool spares_reserved(const MigTable& table, std::span<const MigUsed> used,
                     std::span<const MigReserved> reserved, std::uint64_t places, Instant end);

}  // namespace gantry::sched
