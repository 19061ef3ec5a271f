// Events of jobs that continue with less: without some of their nodes, or with another time limit
// of a step; see events.h.
#pragma once

#include <vector>

#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/use_state.h"

namespace gantry::core::event {

struct NodesGivenBack {  // a running job continues without these nodes
  JobId job{};
  std::vector<NodeId> nodes;
  double charge = 0;  // charge to the fair share from now on, per second
  UseOfJob use{};     // what it counts for limits of use from now on
  GANTRY_EVENT(84, "nodes_given_back") {
    FIELD(1, job), FIELD(2, nodes), FIELD(3, charge), FIELD(4, use);
  }
};

struct StepLimitSet {  // a running step has another time limit
  JobId job{};
  StepId step{};
  Duration time_limit{};  // 0 = none of its own
  GANTRY_EVENT(85, "step_limit_set") { FIELD(1, job), FIELD(2, step), FIELD(3, time_limit); }
};

}  // namespace gantry::core::event
