// ClusterClock: the time that the controller gives to its core. It never goes backwards. When the
// system clock is stepped, cluster time follows by running at most 5 % fast or slow, so that a step
// of an hour in either direction neither ends every job at once nor stops the queue. It starts at
// the system time, or at `floor` (the last time in the journal) if that is later.
#pragma once

#include <cstdint>
#include <functional>

#include "common/time/time.h"

namespace gantry::loop {

inline constexpr std::int64_t kSlewDivisor = 20;  // at most 1/20 of the elapsed time is corrected

struct ClockSource {
  std::function<std::int64_t()> monotonic_us;
  std::function<std::int64_t()> realtime_us;
  static ClockSource system();
};

class ClusterClock {
 public:
  explicit ClusterClock(Instant floor, ClockSource source = ClockSource::system());
  Instant now();
  // System time minus cluster time: how much is still to be corrected.
  [[nodiscard]] Duration behind() const { return behind_; }

 private:
  ClockSource source_;
  std::int64_t anchor_monotonic_us_;
  std::int64_t anchor_us_;
  std::int64_t last_us_;
  Duration behind_{};
};

}  // namespace gantry::loop
