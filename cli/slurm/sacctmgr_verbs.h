// The verbs of sacctmgr that change something.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// `verb`: add, modify, delete, dump or load; `words`: what stands behind it. The exit status.
Result<int> change_accounts(const Invocation& call, std::string_view verb,
                            const std::vector<std::string>& words, bool immediate);

}  // namespace gantry::cli::slurm
