// Variations of a trace, so that a result is not one log's luck: the same log with other run times,
// another part of it, arrivals closer together, or more jobs that need whole nodes. The same
// text always gives the same jobs.
//
// A variation is a list of words and KEY=VALUE, parted by commas:
//   seed=N       of all that is drawn (default 1)
//   permute      the run times are dealt out anew among all jobs
//   arrivals=X   the times between submits are multiplied by X: 0.8 is a fifth more load
//   from=T       only jobs that were submitted so long after the first one, or later
//   length=T     and only those of so long a time
//   large=X      of the jobs that ask for one GPU so large a part (0 to 1) asks for 8, 16, 24 or 32
//                instead, and runs so much shorter: the work stays the same
#pragma once

#include <string>

#include "ctld/replay/trace.h"

namespace gantry::replay {

struct Variation {
  std::uint64_t seed = 1;
  bool permute = false;
  double arrivals = 1;
  Duration from{};
  std::optional<Duration> length;  // unset: to the end
  double large = 0;
};
Result<Variation> parse_variation(const std::string& text);

// Fails if no job is left.
Result<void> vary(Trace& trace, const Variation& variation);

// Random numbers that are the same on every machine: the nth of a seed, and one of 0 to 1.
std::uint64_t scrambled(std::uint64_t x);
double drawn(std::uint64_t seed, std::uint64_t n);

}  // namespace gantry::replay
