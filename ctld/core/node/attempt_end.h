// When an attempt began and ended, as the controller records it; elapsed.h has the rule.
#pragma once

#include "common/proto/attempt.h"
#include "common/proto/node_report.h"
#include "ctld/core/context.h"

namespace gantry::core {

// Translates a time of the node's clock to cluster time, not before `earliest` and not after now.
// The result is `now` if the node sent no time or the offset of its clock is not known.
Instant told_time(const Context& ctx, NodeId node, Instant theirs, Instant earliest);

struct AttemptTimes {
  std::optional<Instant> started;  // set for the batch node, if its part ran
  Instant ended{};
};
AttemptTimes attempt_times(const Context& ctx, const Job& job, NodeId node,
                           const proto::ExitReport& report);

// How long the job's machine slept while the job ran, according to its node's last report.
Duration asleep(const Context& ctx, const Job& job);
void note_sleep(Context& ctx, NodeId node, const proto::AttemptKey& key, Duration asleep);

}  // namespace gantry::core
