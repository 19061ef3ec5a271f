// The values of grun's own options about a step, apart from the job that grun may have to ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/submit/job_request.h"
#include "common/job/task_bind.h"
#include "common/proto/steps.h"

namespace gantry::cli {

// Which tasks read standard input.
enum class StepInput : std::uint8_t { first_task, none, all_tasks, one_task };

// launcher: this process owns the step, and the step ends with it. attached: this process only
// watches a step.
enum class StepRole : std::uint8_t { launcher, attached };

// The options of a step. It derives from the request of a job, so that the setters of job options
// also work on it: inside a job they give the sizes of the step, outside of one the whole request.
struct StepOptions : JobRequest {
  bool label = false;             // -l
  bool kill_on_bad_exit = false;  // -K
  bool overlap = false;
  bool exact = false;     // wants cores that no other step has, and waits for them
  bool terminal = false;  // --pty
  proto::StepMpi mpi = proto::StepMpi::none;
  std::optional<JobId> job_id;     // --jobid
  std::string std_out, std_err;    // file name patterns on the nodes; "" = output comes here
  std::string std_in;              // likewise for a file that each task reads; "" = see input
  bool quit_on_interrupt = false;  // the first Ctrl-C ends the step
  bool disable_status = false;  // the first Ctrl-C goes to the tasks, without printing their status
  StepInput input = StepInput::first_task;
  std::uint32_t input_rank = 0;  // rank for one_task
  std::optional<OpenMode>
      open_mode{};  // for output files; not set: as for the job, if the file is on a node
  TaskBind cpu_bind, mem_bind;
  std::string gpu_bind;  // as parse_gpu_bind() takes it; "" = not given
  // True if the step belongs to a running job: memory, GPUs, time limit and waiting time are the
  // step's. Otherwise they are those of the requested job.
  bool inside = false;
  bool all_cores = false;   // as in StepShape
  bool unbuffered = false;  // outputs of several tasks are not collected into whole lines
  StepRole role = StepRole::launcher;
  Manner manner = Manner::gantry;
  // Output of this task only; not set: of all.
  std::optional<std::uint32_t> only_output, only_error;
  std::uint32_t at_a_time = 0;  // nodes that are asked at a time to start their tasks; 0 = all
  bool keep_sizes = false;  // tasks keep the numbers of nodes and tasks of the present environment
  bool meeting_point = false;  // under Slurm's names: the tasks get MASTER_ADDR and MASTER_PORT
  std::vector<std::string>
      hosts;  // the node of each task of a step, by rank; none = they are dealt
  // Seconds from the end of the first task until the others are ended; 0 = never.
  std::uint32_t patience_s = 0;
};

}  // namespace gantry::cli
