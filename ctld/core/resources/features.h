// What the scheduler matches the wishes of jobs with.
#pragma once

#include <string>
#include <vector>

#include "ctld/core/state/node.h"

namespace gantry::core {

// The features that are declared of the node, and the sandboxes that it has; sorted. A node that
// has not registered yet may have any sandbox.
std::vector<std::string> matched_features(const Node& node);

}  // namespace gantry::core
