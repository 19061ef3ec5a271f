// srun --bcast: the program is copied to the step's nodes before it is started there.
#pragma once

#include <string>
#include <vector>

#include "cli/slurm/step/srun_request.h"

namespace gantry::cli::slurm {

// Copies the program that argv[0] names, by sbcast, and sets argv[0] to the copy. Returns false if
// a node does not have it, which is already reported.
bool broadcast_program(const Invocation& call, const SrunRequest& request, JobId job,
                       std::vector<std::string>& argv);

}  // namespace gantry::cli::slurm
