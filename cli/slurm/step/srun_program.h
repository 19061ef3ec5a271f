// The programs that srun has to do with: what its tasks execute, and what runs beside them here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/slurm/step/srun_request.h"
#include "cli/slurm/step/srun_table.h"

namespace gantry::cli::slurm {

// The command of the tasks: the operands, or what the file of --multi-prog describes, with what
// --task-prolog, --task-epilog and --debugger-test add. A step without a name gets that of its
// program. Returns nullopt if the file cannot be read, which is already reported.
std::optional<std::vector<std::string>> program_of(const Invocation& call, SrunRequest& r,
                                                   const std::vector<std::string>& operands);

// Runs a program of --prolog or --epilog, with the step's command as arguments. Its exit status is
// ignored. "" = there is none.
void run_beside(const Invocation& call, const std::string& program,
                const std::vector<std::string>& command);

// Sets the variables that tell tasks where srun has put them, and counts the tasks that -B makes.

// SLURM_CPU_BIND, SLURM_CPU_BIND_TYPE and the like, if --cpu-bind or --mem-bind was given. The
// environment has them already if they came from there; then they are completed.
void put_bind_variables(const SrunRequest& request, std::map<std::string, std::string>& out);

// A step with -B and without -n has a task on each thread that -B names: sockets times cores times
// threads, on each of its nodes. `group` is the suffix of the job's variables.
void take_tasks_of_node_info(SrunRequest& request, const std::string& group);

// With --gpu-freq=verbose: the line with which Slurm says that the clocks stay as they are.
void say_gpu_clocks(const SrunRequest& request);

}  // namespace gantry::cli::slurm
