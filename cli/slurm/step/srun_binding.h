// Sets the variables that tell tasks where srun has put them, and counts the tasks that -B makes.
#pragma once

#include <map>
#include <string>

#include "cli/slurm/step/srun_request.h"

namespace gantry::cli::slurm {

// SLURM_CPU_BIND, SLURM_CPU_BIND_TYPE and the like, if --cpu-bind or --mem-bind was given. The
// environment has them already if they came from there; then they are completed.
void put_bind_variables(const SrunRequest& request, std::map<std::string, std::string>& out);

// A step with -B and without -n has a task on each thread that -B names: sockets times cores times
// threads, on each of its nodes. `group` is the suffix of the job's variables.
void take_tasks_of_node_info(SrunRequest& request, const std::string& group);

// With --gpu-freq=verbose: the line with which Slurm says that the clocks stay as they are.
void say_gpu_clocks(const SrunRequest& request);

}  // namespace gantry::cli::slurm
