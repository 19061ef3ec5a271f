// One GPU over time: what is in use and until when, what is kept for which job and from when on,
// and therefore what another job may have. The planner of slices (mig_board.h) and the placement of
// jobs (mig_node.h) share it.
#pragma once

#include <cstdint>
#include <span>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/sched/gpu/mig.h"

namespace gantry::sched {

// The end of time, for uses without a known end.
inline constexpr Instant kMigNever{INT64_MAX};

constexpr std::uint64_t mig_bit(MigPlacementId p) {
  return std::uint64_t{1} << p;
}

struct MigUsed {  // in use, failed, or taken by this plan
  MigPlacementId at = 0;
  Instant until{};  // kMigNever: time not known; always later than now
  bool failed = false;
};
struct MigReserved {
  JobId job;
  MigPlacementId at = 0;
  Instant from{};  // kMigNever: time not known
};

// The state of the GPU at `t` with these placements (as bits) added; kNoMigState if they overlap
// what is in use.
MigState mig_state_at(const MigTable& table, std::span<const MigUsed> used, Instant t,
                      std::uint64_t also);

// True if a job in these places until `end` hinders no job for which something is kept: at each
// time from which a place is kept, the layout must be legal with it.
bool spares_reserved(const MigTable& table, std::span<const MigUsed> used,
                     std::span<const MigReserved> reserved, std::uint64_t places, Instant end);

}  // namespace gantry::sched
