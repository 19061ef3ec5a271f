// When an attempt began and ended as the controller writes it down; see elapsed.h for the rule.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// A time of the node's clock in cluster time, neither before `earliest` nor after now. Now, where
// the node does not say or its clock is not known.
Instant told_time(const Context& ctx, NodeId node, Instant theirs, Instant earliest);

struct AttemptTimes {
  std::optional<Instant> started;  // of the batch node's part, if it ran
  Instant ended{};
};
AttemptTimes attempt_times(const Context& ctx, const Job& job, NodeId node,
                           const proto::ExitReport& report);

// For how long the job's machine has slept while it ran, as its node said last.
Duration asleep(const Context& ctx, const Job& job);
void note_sleep(Context& ctx, NodeId node, const proto::AttemptKey& key, Duration asleep);

}  // namespace gantry::core
