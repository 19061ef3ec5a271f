// NotifyMemory: what triggers know of the nodes; see triggers.h. A restart empties it.
#pragma once

#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/core/state/trigger_state.h"

namespace gantry::core {

struct NodeTriggerView {
  bool down = false, drained = false;
  std::optional<Instant> idle;  // since when it is idle
};

struct NotifyMemory {
  // How each node was at the last look for triggers, by NodeId; unset: it has not been looked at.
  std::vector<std::optional<NodeTriggerView>> views;
  // When a trigger that waits for idle nodes has to look at which node.
  std::set<std::tuple<Instant, TriggerId, NodeId>> idle_waits;
};

}  // namespace gantry::core
