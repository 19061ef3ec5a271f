// The address at which the tasks of a step meet that PyTorch's launchers start.
#pragma once

#include <map>
#include <string>

#include "common/proto/steps.h"

namespace gantry {

// The host of an address: "10.0.0.1" for "10.0.0.1:6871", "::1" for "[::1]:6871".
std::string host_of(const std::string& address);

// MASTER_ADDR, the step's first node, and MASTER_PORT, a port below Linux's ephemeral ports that is
// computed from the job and the step.
std::map<std::string, std::string> meeting_point(const proto::StepPermission& permission);

}  // namespace gantry
