// --task-prolog, --task-epilog, --debugger-test and --multi-prog make each task of a step do more
// than run its program. They become a shell script, which the task executes in its container, as
// the job's user and with the task's environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::cli::slurm {

struct AroundTask {
  // Programs on the node that run before and after the task's; "" = none. Of the prolog's output,
  // "export NAME=VALUE" and "unset NAME" change the task's environment, and the rest of "print
  // TEXT" becomes output of the task. The epilog is ended after 5 seconds.
  std::string prolog, epilog;
  bool stopped = false;  // the task prints where it is, and stops itself before its program
};

// The command for the tasks: `argv` itself if nothing else is to be done. `choose` is a script that
// puts the task's program into "$@"; "" = it is `argv`.
std::vector<std::string> task_command(const AroundTask& around, const std::string& choose,
                                      std::vector<std::string> argv);

// srun --multi-prog: a file lists which tasks run which program.

// Reads lines "TASKS PROGRAM [ARGUMENT...]", where TASKS is 0, 1-3, 0,2 or *. %t stands for the
// task's number and %o for its place within TASKS; # begins a comment, and a backslash at the end
// of a line joins it with the next one. The result is a script of the shell that puts the program
// of the task, by its SLURM_PROCID, into "$@". invalid_argument: one of the `tasks` (0 = not known
// yet) has no program; `file` is the name for the message.
Result<std::string> multi_prog_script(std::string_view text, std::uint32_t tasks,
                                      std::string_view file);

}  // namespace gantry::cli::slurm
