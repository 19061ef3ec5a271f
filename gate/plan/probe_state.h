// Decides from the answers to its probes whether a replica is ready; pure.
#pragma once

#include <optional>
#include <string>

#include "common/proto/gate.h"

namespace gantry::gate {

inline constexpr Duration kStartInterval =
    milliseconds(100);  // until it is ready for the first time

struct ProbeAnswer {
  bool good = false;
  std::string why;  // why it is not ready
};

// One kind of probe of one replica.
struct ProbeCount {
  std::uint32_t failures = 0;  // consecutive failures
  Instant next{};              // when the next probe is due
  bool asked = false;          // a probe was sent and is not answered yet
};

struct Probed {
  proto::ReplicaHealth health = proto::ReplicaHealth::starting;
  std::string why;  // reason of the last failed probe
  // The HAProxy that takes connections was seen to send requests to it. The controller must not
  // count on a replica before: its version may need a new HAProxy, which comes a moment later.
  bool taken_in = false;
  ProbeCount ready, live;
};

// Marks the probe as answered, and sets when the next one is due.
void ready_answered(Probed& replica, const tenancy::ServiceProbe& probe, const ProbeAnswer& answer,
                    Instant now);
void live_answered(Probed& replica, const tenancy::ServiceProbe& probe, const ProbeAnswer& answer,
                   Instant now);

// Whether the answer to an HTTP request is a success. `head` is the received part; nullopt = more
// is needed.
std::optional<ProbeAnswer> read_answer(std::string_view head);

}  // namespace gantry::gate
