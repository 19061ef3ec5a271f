// When something began to run, by three clocks: the wall clock, for people; and how long the
// machine had been awake and how long asleep. The awake clock tells how long it ran, because nobody
// sets that clock and it stands still while the machine sleeps.
#pragma once

#include <algorithm>

#include "noded/runtime/job_dir.h"
#include "noded/runtime/records.h"

namespace gantry::runtime {

struct Beginning {
  Instant at{};
  Uptime uptime;

  static Beginning now() { return {wall_clock(), runtime::uptime()}; }
  [[nodiscard]] Duration ran() const {
    return std::max(Duration{}, runtime::uptime().awake - uptime.awake);
  }
  void into(RunningRecord& record) const {
    record.started = at;
    record.awake = uptime.awake;
    record.asleep = uptime.asleep;
  }
  // Call it when the run ends: it writes the start, and the length until now.
  void into(ExitRecord& record) const {
    record.started = at;
    record.ran = ran();
  }
};

}  // namespace gantry::runtime
