// NotifyMemory: the last known state of nodes, for triggers; see triggers.h. A restart empties it.
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
  std::optional<Instant> idle;  // since when the node is idle
};

struct NotifyMemory {
  // The state of each node at the last look for triggers, by NodeId; unset before the first look.
  std::vector<std::optional<NodeTriggerView>> views;
  // When which trigger, waiting for idle nodes, has to check which node.
  std::set<std::tuple<Instant, TriggerId, NodeId>> idle_waits;
};

}  // namespace gantry::core
