// What is told about one job that is held up, or about a channel that is full.
#pragma once

#include <optional>
#include <vector>

#include "noded/neighbours/rates.h"

namespace gantry::neighbours {

using Cause = proto::SharingCause;

struct Culprit {
  proto::AttemptKey key;
  double share = 0;  // of what was used of the channel, 0 to 1
  double rise = 0;   // its part of what came to be used more than before, 0 to 1
};

struct Verdict {
  Cause cause = Cause::unknown;
  std::vector<Culprit> culprits;  // neighbours only; the greatest rise first
  double confidence = 0;          // 0 to 1
  bool compared = false;          // with rows in which the victim was not held up
};

// The numbers on which a finding rests, as of the last row in which the victim was held up.
struct Evidence {
  double level = 0;      // of the channel, as Rule::saturated has it
  double saturated = 0;  // the rule's threshold
  double held_up = 0;    // the victim's, net of what it brought on itself
  double own = 0;        // what it brought on itself
  double machine = 0;    // share of the use that belongs to no job
};

struct Finding {
  std::uint64_t number = 0;  // of this detector; counts from 1
  Channel channel;
  std::optional<proto::AttemptKey> victim;  // unset: the channel is full, and no job suffers
  Instant since{};                          // the first row in which it was so
  Instant last{};                           // the last one
  std::optional<Instant> ended;
  Verdict verdict;
  Evidence evidence;
};

}  // namespace gantry::neighbours
