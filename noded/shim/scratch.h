// A job's own directory on the node's scratch disk, used as its /tmp when it asked for scratch.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// "" when the job asked for none. Mode 0700, owned by the job's user.
Result<std::string> make_scratch(const NodeSetup& setup, const LaunchRequest& request);
void remove_scratch(const NodeSetup& setup, const LaunchRequest& request);

}  // namespace gantry::runtime
