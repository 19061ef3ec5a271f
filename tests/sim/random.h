// The only source of chance of a simulated history: xoshiro256** seeded by splitmix64, so that a
// seed gives the same history with every compiler and library.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/time/time.h"

namespace gantry::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : s_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  std::uint64_t next() {
    const std::uint64_t out = rotate(s_[1] * 5, 7) * 9;
    const std::uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = rotate(s_[3], 45);
    return out;
  }

  // Returns 0 .. n-1; n >= 1. The small bias of a modulus does not matter here.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  std::int64_t between(std::int64_t low, std::int64_t high) {  // both ends included
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool chance(std::uint64_t per_mille) { return below(1000) < per_mille; }

  Duration between(Duration low, Duration high) { return {between(low.us, high.us)}; }
  // Returns mostly short and sometimes long durations: each halving of `most` is as likely as the
  // next.
  Duration spread(Duration most, unsigned halvings = 8) {
    const Duration top{most.us >> below(halvings)};
    return {between(top.us / 2, top.us)};
  }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<std::uint64_t, 4> s_{};
};

}  // namespace gantry::sim
