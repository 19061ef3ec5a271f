// What a plan leaves for the next one and does not follow from the changes alone: reservations
// (reservations.h), places kept for slices, and notes (memory.h, request_keys.h).
#pragma once

#include <unordered_map>
#include <vector>

#include "ctld/sched/gpu/mig_kept.h"
#include "ctld/sched/queue/memory.h"
#include "ctld/sched/queue/request_keys.h"
#include "ctld/sched/time/reservations.h"

namespace gantry::sched {

struct Left {
  RequestKeys requests;
  Reservations reservations;
  std::vector<MigKept> kept_slices;  // for jobs that wait
  Memory memory;
  // The time at which a search for victims last found none, by class.
  std::unordered_map<std::uint32_t, Instant> in_vain;
  bool searches_cut = false;  // the last plan reached its limit of searches
};

}  // namespace gantry::sched
