// Variations of a trace, so that a result does not depend on one log by chance: the same log with
// other run times, another part of it, arrivals closer together, or more jobs that need whole
// nodes. The same text always gives the same jobs.
//
// A variation is a list of words and KEY=VALUE, separated by commas:
//   seed=N       seed for everything that is drawn (default 1)
//   permute      the run times are permuted among all jobs
//   arrivals=X   the times between submits are multiplied by X: 0.8 is a fifth more load
//   from=T       only jobs that were submitted this long after the first one, or later
//   length=T     and of these only the ones of a time span of this length
//   large=X      this part (0 to 1) of the jobs that ask for one GPU asks for 8, 16, 24 or 32
//                instead, and runs shorter in proportion: the work stays the same
#pragma once

#include <string>

#include "ctld/replay/trace.h"

namespace gantry::replay {

struct Variation {
  std::uint64_t seed = 1;
  bool permute = false;
  double arrivals = 1;
  Duration from{};
  std::optional<Duration> length;  // not set: to the end
  double large = 0;
};
Result<Variation> parse_variation(const std::string& text);

// Fails if no job is left.
Result<void> vary(Trace& trace, const Variation& variation);

// Random numbers that are the same on every machine: the nth number of a seed, and one from 0 to 1.
std::uint64_t scrambled(std::uint64_t x);
double drawn(std::uint64_t seed, std::uint64_t n);

}  // namespace gantry::replay
