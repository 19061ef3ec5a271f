// The environment of one task of a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// "NAME=value" of task `index` on this node, which has these cores. The variables about GPUs are
// those of this node and of the step. It fails if the step's binding of GPUs is impossible here.
Result<std::vector<std::string>> task_environment(const LaunchRequest& job, const StepRequest& step,
                                                  std::uint32_t index,
                                                  const std::vector<std::uint16_t>& cpus);

}  // namespace gantry::runtime
