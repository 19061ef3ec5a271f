// The environment of a job's processes, made from the job's own variables and those of an image.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "noded/image/manifest.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// A variable of the image wins over one that the user's shell happened to have (PATH, LANG,
// LD_LIBRARY_PATH ...), but never over one that describes the job or the user. PATH, HOME, USER,
// LOGNAME, SHELL and TMPDIR are always set. invalid_argument: the environment or the script's
// arguments hold bytes that config.json cannot (no UTF-8), or more than the kernel gives a program.
Result<std::vector<std::string>> container_environment(const LaunchRequest& request,
                                                       const ImageConfig& image);

// The job's GPUs that the step has. `alone`: its tasks can open no others of the job's, so that the
// CUDA runtime numbers those of the step from 0 on.
std::vector<VisibleGpu> gpus_of_step(const LaunchRequest& job, const StepRequest& step, bool alone);
// The job's devices that the step may not open: those of GPUs that it does not have.
std::vector<DeviceRule> devices_closed_to(const LaunchRequest& job, const StepRequest& step);

struct TaskEnvironment {
  std::vector<std::string> variables;  // "NAME=value"
  std::string note;                    // for its standard error, if the binding of GPUs is verbose
};

// Of task `index` on this node, which has these cores. The variables about GPUs are those of this
// node and of the step, which has `gpus`. It fails if the step's binding of GPUs is impossible.
Result<TaskEnvironment> task_environment(const LaunchRequest& job, const StepRequest& step,
                                         const std::vector<VisibleGpu>& gpus, std::uint32_t index,
                                         const std::vector<std::uint16_t>& cpus);

}  // namespace gantry::runtime
