// Running a step of a job, for grun and srun: from the controller's permission to the last output.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/step/step_options.h"
#include "common/proto/steps.h"

namespace gantry::cli {

struct StepCommand {
  std::string program;  // "grun", for messages
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
};

// A positive number of at most a million; nullopt: unset, or something else.
std::optional<std::uint32_t> number_of_env(const char* name);

// The job whose step this is: --jobid, or the one we run in.
std::optional<JobId> surrounding_job(const StepOptions& options);

// Which GPUs the tasks of steps see, as SLURM_GPU_BIND: the variable is Slurm's, with which a job
// tells it to the steps inside. A step tells it to the nodes in LaunchStep. --gpus-per-task says it
// too. `bind`: as parse_gpu_bind() takes it, or "".
std::map<std::string, std::string> task_gpu_variables(const GpuWish& gpus, const std::string& bind);

// A step of one job, or of one component of a heterogeneous job.
struct StepPart {
  StepCommand command;
  StepOptions options;
  JobId job{};
  std::string
      group;  // "_HET_GROUP_1": behind the names of variables that say the job's sizes; or ""
};

// The exit status of the step: largest of the tasks', 128 + signal. Several parts, of several
// components, are one to their tasks, whose numbers go through all parts in their order; what
// concerns our end of it (labels, input, --kill-on-bad-exit, ...) is as the first part's options
// say. They have neither a terminal nor --mpi.
Result<int> run_step(std::vector<StepPart> parts, Session& session);
Result<int> run_step(StepCommand command, StepOptions options, Session& session, JobId job);

}  // namespace gantry::cli
