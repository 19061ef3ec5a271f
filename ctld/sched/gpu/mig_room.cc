#include "ctld/sched/gpu/mig_room.h"

#include <bit>

namespace gantry::sched {

MigState mig_state_at(const MigTable& table, std::span<const MigUsed> used, Instant t,
                      std::uint64_t also) {
  MigState s = 0;
  for (const MigUsed& u : used) {
    const bool stays = u.failed || (t < kMigNever && u.until > t);
    if (stays && s != kNoMigState) s = table.with(s, u.at);
  }
  for (; also != 0 && s != kNoMigState; also &= also - 1)
    s = table.with(s, static_cast<MigPlacementId>(std::countr_zero(also)));
  return s;
}

bool spares_reserved(const MigTable& table, std::span<const MigUsed> used,
                     std::span<const MigReserved> reserved, std::uint64_t places, Instant end) {
  for (const MigReserved& r : reserved) {
    if (r.from < kMigNever && r.from >= end) continue;
    std::uint64_t then = 0;
    for (const MigReserved& other : reserved)
      if (other.from <= r.from) then |= mig_bit(other.at);
    if ((then & places) != 0 || mig_state_at(table, used, r.from, then | places) == kNoMigState)
      return false;
  }
  return true;
}

}  // namespace gantry::sched
