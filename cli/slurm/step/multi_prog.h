// srun --multi-prog: a file says which tasks run which program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::cli::slurm {

// Lines "TASKS PROGRAM [ARGUMENT...]" with TASKS as 0, 1-3, 0,2 or *; %t is the task's number, %o
// its place within TASKS; # begins a comment. The result is a command that looks at SLURM_PROCID.
Result<std::vector<std::string>> multi_prog_command(std::string_view text);

}  // namespace gantry::cli::slurm
