// A place on a GPU that plans keep for a waiting job: other jobs may use it only if they end before
// the job needs it. It is kept from plan to plan, like a reservation (reservations.h); mig_plan.h
// decides which places are kept, and for which jobs.
#pragma once

#include <cstdint>

#include "common/time/time.h"
#include "common/types.h"

namespace gantry::sched {

struct MigKept {
  JobId job;
  std::uint32_t part = 0;  // for a job on several nodes: number of its part, from 0
  std::uint32_t node = 0;
  std::uint16_t gpu = 0;      // GpuView::index
  std::uint32_t profile = 0;  // MigProfile::id
  std::uint16_t start = 0;    // memory slice
  Instant from{};             // kMigNever (mig_room.h): time not known
  friend bool operator==(const MigKept&, const MigKept&) = default;
};

}  // namespace gantry::sched
