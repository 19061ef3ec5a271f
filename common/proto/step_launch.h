// LaunchStep: what grun hands to each node of a step (steps.h): the permission, the program, and
// how its tasks are started.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/gpu_bind.h"
#include "common/job/job_spec.h"
#include "common/job/process_limits.h"
#include "common/job/task_bind.h"
#include "common/types.h"

namespace gantry::proto {

// The size of the terminal window for task 0, in characters.
struct TerminalSize {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, columns))
};

// The interface by which the tasks of a step find each other, besides their environment.
enum class StepMpi : std::uint8_t { none = 0, pmix = 1, pmi2 = 2 };
GANTRY_NAMES(StepMpi, {none, "none"}, {pmix, "pmix"}, {pmi2, "pmi2"})

// Which tasks read the client's standard input.
enum class StepInputTo : std::uint8_t { first_task = 0, all_tasks = 1, one_task = 2 };
GANTRY_NAMES(StepInputTo, {first_task, "first_task"}, {all_tasks, "all_tasks"},
             {one_task, "one_task"})

// One of several steps, in components of a heterogeneous job, that appear to their tasks as one
// step.
struct HetStep {
  std::uint32_t first_rank = 0, first_node = 0;  // position of this step within all of them
  std::vector<std::string> nodes;                // nodes of all of them
  std::vector<std::uint32_t> tasks;              // tasks on each of `nodes`
  GANTRY_FIELDS(FIELD(1, first_rank), FIELD(2, first_node), FIELD(3, nodes), FIELD(4, tasks))
};

struct LaunchStep {  // client to node
  Bytes permission;
  Bytes signature;
  std::string node;  // which of the permission's nodes this message is for
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::string work_dir;
  std::string io_address;  // host:port to dial
  Bytes io_key;            // 32 random bytes, made by grun for this step
  std::string std_out;     // "" = to grun; else pattern of a file on the node
  std::string std_err;
  Bytes io_ticket;  // identifies the step of the stream, in plain text
  std::string job_name;
  std::optional<TerminalSize> terminal;  // for task 0; the other tasks then have no standard files
  StepMpi mpi = StepMpi::none;
  std::optional<HetStep> het{};
  CoreOrder core_order = CoreOrder::block;
  std::optional<GpuBind> gpu_bind{};  // unset: sent by an older client as SLURM_GPU_BIND
  // The numbers of nodes and tasks in the variables stay as `environment` has them.
  bool keep_sizes = false;
  ProcessLimits limits;
  bool meeting_point = true;  // the tasks get MASTER_ADDR and MASTER_PORT
  StepInputTo input = StepInputTo::first_task;
  std::uint32_t input_rank = 0;         // rank, for one_task
  std::optional<OpenMode> open_mode{};  // for std_out and std_err; unset: the job's
  std::string std_in;  // pattern of a file on the node that each task reads; "" = see input
  TaskBind cpu_bind, mem_bind;
  GANTRY_FIELDS(FIELD(1, permission), FIELD(2, signature), FIELD(3, node), FIELD(4, argv),
                FIELD(5, environment), FIELD(6, work_dir), FIELD(7, io_address), FIELD(8, io_key),
                FIELD(9, std_out), FIELD(10, std_err), FIELD(11, io_ticket), FIELD(12, job_name),
                FIELD(13, terminal), FIELD(14, mpi), FIELD(15, het), FIELD(16, core_order),
                FIELD(17, gpu_bind), FIELD(19, keep_sizes), FIELD(20, limits),
                FIELD(21, meeting_point), FIELD(22, input), FIELD(23, input_rank),
                FIELD(24, open_mode), FIELD(25, cpu_bind), FIELD(26, mem_bind), FIELD(27, std_in))
};

}  // namespace gantry::proto
