// squeue --steps: lists the steps that run now; they are read from accounting.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/proto/job_query.h"
#include "common/result.h"

namespace gantry::cli::slurm {

struct StepsQuestion {
  proto::JobFilter filter;          // which jobs
  std::vector<std::string> wanted;  // "12.0", "12.batch", or "12" for all steps of it; none = all
  std::string letters;              // format of -o
  std::string names;                // format of -O
  bool no_header = false;
};

// Prints the table and returns the exit status.
Result<int> show_steps(const Invocation& call, const StepsQuestion& question);

}  // namespace gantry::cli::slurm
