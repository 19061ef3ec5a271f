// When a replica is ready, and when it is not any more: what the answers to its probes mean; pure.
#pragma once

#include <optional>
#include <string>

#include "common/proto/gate.h"

namespace gantry::gate {

inline constexpr Duration kStartInterval =
    milliseconds(100);  // until it is ready for the first time

struct ProbeAnswer {
  bool good = false;
  std::string why;  // it is not good
};

// One kind of probe of one replica.
struct ProbeCount {
  std::uint32_t failures = 0;  // in a row
  Instant next{};              // when it is to be asked again
  bool asked = false;          // and no answer has come
};

struct Probed {
  proto::ReplicaHealth health = proto::ReplicaHealth::starting;
  std::string why;  // of the last failed probe
  // The HAProxy that takes connections was seen to send requests to it. The controller must not
  // count on a replica before: its version may need a new HAProxy, which comes a moment later.
  bool taken_in = false;
  ProbeCount ready, live;
};

// Marks the probe as answered, and says when the next one is due.
void ready_answered(Probed& replica, const tenancy::ServiceProbe& probe, const ProbeAnswer& answer,
                    Instant now);
void live_answered(Probed& replica, const tenancy::ServiceProbe& probe, const ProbeAnswer& answer,
                   Instant now);

// Is the answer to an HTTP request good? `head` is what has come of it so far; nothing = more has
// to come.
std::optional<ProbeAnswer> read_answer(std::string_view head);

}  // namespace gantry::gate
