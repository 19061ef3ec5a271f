// gctl logs: prints the output of a job, or of the tasks of an array, while the job runs and after.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlLogs;

}  // namespace gantry::cli
