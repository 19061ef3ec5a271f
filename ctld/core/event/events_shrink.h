// Events of jobs that run on with less: without some of their nodes, or with another limit of a
// step; see events.h.
#pragma once

#include <vector>

#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/use_state.h"

namespace gantry::core::event {

struct NodesGivenBack {  // a running job goes on without these nodes
  JobId job{};
  std::vector<NodeId> nodes;
  double charge = 0;  // charge to the fair share from now on, per second
  UseOfJob use{};     // what it counts for limits of use from now on
  GANTRY_EVENT(84, "nodes_given_back") {
    v(1, "job", s.job);
    v(2, "nodes", s.nodes);
    v(3, "charge", s.charge);
    v(4, "use", s.use);
  }
};

struct StepLimitSet {  // a running step has another time limit
  JobId job{};
  StepId step{};
  Duration time_limit{};  // 0 = none of its own
  GANTRY_EVENT(85, "step_limit_set") {
    v(1, "job", s.job);
    v(2, "step", s.step);
    v(3, "time_limit", s.time_limit);
  }
};

}  // namespace gantry::core::event
