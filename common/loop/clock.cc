#include "common/loop/clock.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace gantry::loop {
namespace {

// The anchor moves only after this long, so that rounding does not lose the correction of a step.
constexpr std::int64_t kAnchorUs = 10'000;

std::int64_t read_clock(clockid_t id) {
  timespec t = {};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

}  // namespace

ClockSource ClockSource::system() {
  // CLOCK_MONOTONIC would stand still while the machine sleeps. Cluster time would then be hours
  // behind, and would have to run 5 % too fast for days.
  return {.monotonic_us = [] { return read_clock(CLOCK_BOOTTIME); },
          .realtime_us = [] { return read_clock(CLOCK_REALTIME); }};
}

ClusterClock::ClusterClock(Instant floor, ClockSource source)
    : source_(std::move(source)),
      anchor_monotonic_us_(source_.monotonic_us()),
      anchor_us_(std::max(source_.realtime_us(), floor.us)),
      last_us_(anchor_us_) {}

Instant ClusterClock::now() {
  const std::int64_t monotonic = source_.monotonic_us();
  const std::int64_t elapsed = std::max<std::int64_t>(monotonic - anchor_monotonic_us_, 0);
  const std::int64_t unslewed = anchor_us_ + elapsed;
  const std::int64_t error = source_.realtime_us() - unslewed;
  const std::int64_t most = elapsed / kSlewDivisor;
  const std::int64_t slewed = unslewed + std::clamp(error, -most, most);
  // Within one anchor period the system clock may jump back and forth; cluster time still never
  // goes back.
  last_us_ = std::max(last_us_, slewed);
  behind_ = Duration{unslewed + error - last_us_};
  if (elapsed >= kAnchorUs) {
    anchor_monotonic_us_ = monotonic;
    anchor_us_ = last_us_;
  }
  return Instant{last_us_};
}

}  // namespace gantry::loop
