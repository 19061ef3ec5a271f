// Where the tasks of a step meet that PyTorch's launchers start.
#pragma once

#include <map>
#include <string>

#include "common/proto/steps.h"

namespace gantry {

// "10.0.0.1" of "10.0.0.1:6871", "::1" of "[::1]:6871".
std::string host_of(const std::string& address);

// MASTER_ADDR, the step's first node, and MASTER_PORT, made from the job and the step, below
// Linux's ephemeral ports.
std::map<std::string, std::string> meeting_point(const proto::StepPermission& permission);

}  // namespace gantry
