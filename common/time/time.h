// Time as the core sees it: microseconds that the shell around it hands in. No clock is read here.
#pragma once

#include <compare>
#include <cstdint>

namespace gantry {

// A length of time in microseconds. It is negative only as the difference of two instants.
struct Duration {
  std::int64_t us = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.us + b.us}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.us - b.us}; }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return {a.us * n}; }
  [[nodiscard]] constexpr std::int64_t seconds() const { return us / 1'000'000; }
};

constexpr Duration microseconds(std::int64_t n) {
  return {n};
}
constexpr Duration milliseconds(std::int64_t n) {
  return {n * 1'000};
}
constexpr Duration seconds(std::int64_t n) {
  return {n * 1'000'000};
}
constexpr Duration minutes(std::int64_t n) {
  return seconds(n * 60);
}
constexpr Duration hours(std::int64_t n) {
  return minutes(n * 60);
}

// A point of cluster time: microseconds since 1970-01-01T00:00:00Z. Cluster time never goes
// backwards while a controller lives (common/loop/clock.h compensates steps of the system clock
// slowly).
struct Instant {
  std::int64_t us = 0;
  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return {t.us + d.us}; }
  friend constexpr Instant operator-(Instant t, Duration d) { return {t.us - d.us}; }
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.us - b.us}; }
};

}  // namespace gantry
