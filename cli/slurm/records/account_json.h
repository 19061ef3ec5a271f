// A job of the accounts as Slurm's data_parser shows it.
#pragma once

#include "cli/slurm/json.h"
#include "cli/slurm/records/account_fields.h"

namespace gantry::cli::slurm {

Tree sacct_job_tree(const AccountRow& v);  // of a job's own line, with its steps

}  // namespace gantry::cli::slurm
