// Programs related to srun: those that its tasks execute, and those that run beside them on this
// host.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/slurm/step/srun_request.h"
#include "cli/slurm/step/srun_table.h"

namespace gantry::cli::slurm {

// The command of the tasks: the operands, or what the file of --multi-prog describes, with what
// --task-prolog, --task-epilog and --debugger-test add. A step without a name is named after its
// program. Returns nullopt if the file cannot be read, which is already reported.
std::optional<std::vector<std::string>> program_of(const Invocation& call, SrunRequest& r,
                                                   const std::vector<std::string>& operands);

// Runs a program of --prolog or --epilog, with the step's command as arguments. Its exit status is
// ignored. "" = there is none.
void run_beside(const Invocation& call, const std::string& program,
                const std::vector<std::string>& command);

// Sets the variables that tell tasks their binding, and computes the number of tasks from -B.

// SLURM_CPU_BIND, SLURM_CPU_BIND_TYPE and the like, if --cpu-bind or --mem-bind was given. If they
// came from the environment, they are only completed.
void put_bind_variables(const SrunRequest& request, std::map<std::string, std::string>& out);

// A step with -B and without -n has a task on each thread given by -B: sockets times cores times
// threads, on each of its nodes. `group` is the suffix of the job's variables.
void take_tasks_of_node_info(SrunRequest& request, const std::string& group);

// With --gpu-freq=verbose: Slurm's line that the clocks stay as they are.
void say_gpu_clocks(const SrunRequest& request);

}  // namespace gantry::cli::slurm
