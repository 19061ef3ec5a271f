// Figures: what ShowStats and ShowConfig report, apart from the counters of Stats.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "ctld/core/runtime.h"

namespace gantry::core {

struct Calls {
  std::uint64_t count = 0;
  Duration time{};
};

struct Figures {
  Instant started{};        // when the controller started
  Stats before;             // when somebody reset them; see ResetStats
  Instant reset{};          // time of that reset, or of the controller's start
  Duration plan_longest{};  // since that time
  std::map<std::string, Calls, std::less<>> calls, callers;  // since that time; by message, by user
  // Options with the values in force, as operators and as users see them; start() prepares them.
  std::map<std::string, std::string> config_values, users_config_values;
};

}  // namespace gantry::core
