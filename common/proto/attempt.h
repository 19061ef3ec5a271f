// An attempt is one run of a job. These structs are the reports of nodes about attempts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "common/fields.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

enum class AttemptPhase : std::uint8_t {
  preparing = 1,
  held = 2 /* ready, waits for Go */,
  running = 3,
  finishing = 4,
  exited = 5
};
GANTRY_NAMES(AttemptPhase, {preparing, "preparing"}, {held, "held"}, {running, "running"},
             {finishing, "finishing"}, {exited, "exited"})

struct AttemptKey {
  JobId job{};
  Attempt attempt{};
  friend auto operator<=>(const AttemptKey&, const AttemptKey&) = default;
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, attempt))
};

struct AttemptStatus {
  AttemptKey key;
  AttemptPhase phase = AttemptPhase::preparing;
  std::optional<Instant> started{};  // by the node's clock; set once the attempt runs
  Duration asleep{};                 // as AttemptSleep has it
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, phase), FIELD(3, started), FIELD(4, asleep))
};

// How long the machine has slept since the attempt began to run. The attempt did not run during
// that time, so its time limit does not count it.
struct AttemptSleep {
  AttemptKey key;
  Duration asleep{};
  friend bool operator==(const AttemptSleep&, const AttemptSleep&) = default;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, asleep))
};

struct AttemptCheckpoint {
  AttemptKey key;
  Instant at{};  // by the node's clock
  friend bool operator==(const AttemptCheckpoint&, const AttemptCheckpoint&) = default;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, at))
};

}  // namespace gantry::proto
