// srun --multi-prog: a file says which tasks run which program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry::cli::slurm {

// Reads lines "TASKS PROGRAM [ARGUMENT...]", where TASKS is 0, 1-3, 0,2 or *. %t stands for the
// task's number and %o for its place within TASKS; # begins a comment, and a backslash at the end
// of a line joins it with the next one. The result is a script of the shell that puts the program
// of the task, by its SLURM_PROCID, into "$@". invalid_argument: one of the `tasks` (0 = not known
// yet) has no program; `file` is the name for the message.
Result<std::string> multi_prog_script(std::string_view text, std::uint32_t tasks,
                                      std::string_view file);

}  // namespace gantry::cli::slurm
