// Runs a step of a job, for grun and srun: from the controller's permission to the last output.
#pragma once

#include <cstdint>
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

// The value of an environment variable, if it is a number from 1 to a million; nullopt if it is not
// set or is something else.
std::optional<std::uint32_t> number_of_env(const char* name);

// The job that the step belongs to: that of --jobid, or the one in which this process runs.
std::optional<JobId> surrounding_job(const StepOptions& options);

// The variable SLURM_GPU_BIND says which GPUs the tasks of steps see. It is Slurm's, and a job
// tells it to the steps inside; a step tells the nodes in LaunchStep. `bind`, or else
// --gpus-per-task, sets it. `bind` is a value that parse_gpu_bind() takes, or "".
std::map<std::string, std::string> task_gpu_variables(const GpuWish& gpus, const std::string& bind);

// A step of one job, or of one component of a heterogeneous job.
struct StepPart {
  StepCommand command;
  StepOptions options;
  JobId job{};
  std::string group;  // suffix of the variables with the job's sizes: "_HET_GROUP_1", or ""
};

// Runs a step and returns its exit status: the largest of its tasks', where a signal counts as 128
// + its number. If there are several parts (components of a heterogeneous job), their tasks see one
// step: ranks count through all parts in order. Options for this side of the step (labels, input,
// --kill-on-bad-exit, ...) are taken from the first part. Several parts cannot have a terminal or
// --mpi.
Result<int> run_step(std::vector<StepPart> parts, Session& session);
Result<int> run_step(StepCommand command, StepOptions options, Session& session, JobId job);

// Collects how the tasks of a step have ended and tells it to a person. Tasks of one node that end
// in the same way within a moment share one line: "n1: tasks 0-3,7: Exited with exit code 1".

class StepEndings {
 public:
  static constexpr std::int64_t kMoment = 20'000;  // microseconds that a line waits for more tasks

  void add(const std::string& node, std::uint32_t rank, const std::string& what,
           std::int64_t now_us);
  // The time when the collected lines are due; nullopt if there are none.
  [[nodiscard]] std::optional<std::int64_t> due_us() const;
  // Removes and returns the collected lines, in the order in which their nodes reported.
  std::vector<std::string> take();

 private:
  struct Line {
    std::string node, what;
    std::vector<std::uint32_t> ranks;
  };
  std::vector<Line> lines_;
  std::int64_t due_us_ = 0;
};

}  // namespace gantry::cli
