// The environment of a job's processes, made from the job's own variables and those of an image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "noded/image/manifest.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// A variable of the image overrides one of the user's shell (PATH, LANG, LD_LIBRARY_PATH ...), but
// never one that describes the job or the user. PATH, HOME, USER, LOGNAME, SHELL and TMPDIR are
// always set. Error invalid_argument: the environment or the script's arguments are no UTF-8, which
// config.json needs, or are larger than the kernel allows.
Result<std::vector<std::string>> container_environment(const LaunchRequest& request,
                                                       const ImageConfig& image);

// The job's GPUs that the step has. `alone`: its tasks cannot open the job's other GPUs, so the
// CUDA runtime numbers the step's GPUs from 0 on.
std::vector<VisibleGpu> gpus_of_step(const LaunchRequest& job, const StepRequest& step, bool alone);
// The job's devices that the step may not open: those of GPUs that the step does not have.
std::vector<DeviceRule> devices_closed_to(const LaunchRequest& job, const StepRequest& step);

struct TaskEnvironment {
  std::vector<std::string> variables;  // "NAME=value"
  std::string note;                    // for its standard error, if the binding of GPUs is verbose
};

// Returns the environment of task `index` on this node; `cpus` are its cores. The variables about
// GPUs are those of this node and of the step, which has `gpus`. It fails if the step's binding of
// GPUs is impossible.
Result<TaskEnvironment> task_environment(const LaunchRequest& job, const StepRequest& step,
                                         const std::vector<VisibleGpu>& gpus, std::uint32_t index,
                                         const std::vector<std::uint16_t>& cpus);

}  // namespace gantry::runtime
