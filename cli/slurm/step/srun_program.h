// The programs that srun has to do with: what its tasks execute, and what runs beside them here.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

}  // namespace gantry::cli::slurm
