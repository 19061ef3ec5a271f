// The listings of sacctmgr.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/result.h"

namespace gantry::cli::slurm {

struct SacctmgrCall {
  bool no_header = false;
  bool parsable = false;
  bool parsable2 = false;
  bool associations = false;
  bool immediate = false;
  bool read_only = false;
};

// `words` has the entity and the conditions. Returns the exit status.
Result<int> list_entities(const Invocation& call, const SacctmgrCall& options,
                          const std::vector<std::string>& words);

}  // namespace gantry::cli::slurm
