// srun --multi-prog: a file says which tasks run which program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::cli::slurm {

// Reads lines "TASKS PROGRAM [ARGUMENT...]", where TASKS is 0, 1-3, 0,2 or *. %t stands for the
// task's number and %o for its place within TASKS; # begins a comment. The result is a command that
// chooses its program by SLURM_PROCID.
Result<std::vector<std::string>> multi_prog_command(std::string_view text);

}  // namespace gantry::cli::slurm
