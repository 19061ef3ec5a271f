// Usage decays with a half-life H, exactly and without a periodic pass. With lambda = ln 2 / H, an
// amount A at time t0 and a constant rate R since then, the amount at time t is
//
//   A(t) = A exp(-lambda dt) + (R / lambda) (1 - exp(-lambda dt)),   dt = t - t0
//
// This solves dA/dt = R - lambda A. Splitting the interval anywhere gives the same value.
#pragma once

#include <cmath>

#include "common/time/time.h"
#include "ctld/sched/tenancy.h"

namespace gantry::sched {

// The amount at `at`; an instant before usage.at counts as usage.at.
inline double amount_at(const DecayedUsage& usage, Instant at, Duration half_life) {
  const double dt = at > usage.at ? static_cast<double>((at - usage.at).us) / 1e6 : 0;
  if (half_life.us <= 0) return usage.amount + usage.rate * dt;  // no decay
  const double lambda = std::log(2.0) / (static_cast<double>(half_life.us) / 1e6);
  const double gone = -std::expm1(-lambda * dt);
  return usage.amount * (1 - gone) + usage.rate / lambda * gone;
}

inline void advance(DecayedUsage& usage, Instant at, Duration half_life) {
  usage.amount = amount_at(usage, at, half_life);
  usage.at = std::max(usage.at, at);
}

}  // namespace gantry::sched
