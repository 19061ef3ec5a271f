// NodeMemory: what this folder knows of reservations and of nodes that slept; a restart empties it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/time/time.h"
#include "common/types.h"

namespace gantry::core {

struct NodeMemory {
  std::optional<Instant> window_due;  // when a reservation begins, ends, or is to be looked at
  std::map<std::string, Instant>
      windows_idle;  // active reservations that no job names, and since when
  // Placed jobs whose machine slept while they ran: the attempt, and how long the machine slept.
  std::unordered_map<JobId, std::pair<Attempt, Duration>> asleep;
};

}  // namespace gantry::core
