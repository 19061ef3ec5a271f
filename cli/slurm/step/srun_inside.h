// srun inside a job: the options of jobs that a step may have, and values that come from the job.
#pragma once

#include <string>
#include <vector>

#include "cli/slurm/step/srun_table.h"

namespace gantry::cli::slurm {

// Whether it is one of srun's own options, not one that describes a job.
bool is_srun_option(const Option& option);

// Removes the options that have no effect for a step, as in Slurm, and those that ask for what a
// step has anyway. `exclusive` becomes true for --exclusive: the step waits for cores of its own.
// Returns false if an option is only for allocations, which is already reported.
bool keep_step_options(const Invocation& call, std::vector<Given>& given, bool& exclusive);

// A step may have its own whole GPUs of the job, and no other own resources.
Result<void> check_step_gpus(const GpuWish& wish);

// Applies -r: the step uses the job's nodes from the Nth on. `group` is the suffix of the variables
// that describe the component. Returns false, after a message, if there are too few.
bool set_relative_nodes(const Invocation& call, SrunRequest& r, const std::string& group);

// As in Slurm -c without a number of tasks, of the step or of the job, starts as many tasks as the
// job's cores allow: on the nodes of -N, else on all. The job's variables must be set.
void fill_with_tasks(SrunRequest& r, const std::string& group);

// The daemon of a launcher shares all cores of its node with the others there, as in Slurm for a
// step that asks for none. A component's launchers have to give a number.
void widen_launchers(SrunRequest& r);

}  // namespace gantry::cli::slurm
