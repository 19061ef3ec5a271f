// Jobs as Slurm's data_parser shows them.
#pragma once

#include <vector>

#include "cli/slurm/json.h"
#include "cli/slurm/records/job_fields.h"

namespace gantry::cli::slurm {

Tree jobs_tree(const std::vector<QueueRow>& rows);

// Returns {"status": ["SUCCESS"], "return_code": {...}, "signal": {...}}.
Tree exit_code_tree(const ExitStatus& exit);

}  // namespace gantry::cli::slurm
