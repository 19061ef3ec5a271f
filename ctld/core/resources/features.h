// The node features that the scheduler matches with what jobs ask for.
#pragma once

#include <string>
#include <vector>

#include "ctld/core/state/node.h"

namespace gantry::core {

// The features that are declared for the node, and the sandboxes that it has; sorted. A node that
// has not registered yet may have any sandbox.
std::vector<std::string> matched_features(const Node& node);

}  // namespace gantry::core
