// squeue --steps: steps that run now, out of the accounts.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/proto/job_query.h"
#include "common/result.h"

namespace gantry::cli::slurm {

struct StepsQuestion {
  proto::JobFilter filter;          // which jobs
  std::vector<std::string> wanted;  // "12.0", "12.batch", or "12" for all of it; none = all
  std::string letters;              // -o
  std::string names;                // -O
  bool no_header = false;
};

// Prints the table; the exit status.
Result<int> show_steps(const Invocation& call, const StepsQuestion& question);

}  // namespace gantry::cli::slurm
