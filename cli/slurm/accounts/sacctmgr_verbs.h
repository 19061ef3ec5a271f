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

// The same of `add qos`, `modify qos` and `delete qos`; `words` begins with the entity.
Result<int> change_qos(const Invocation& call, std::string_view verb,
                       const std::vector<std::string>& words, bool immediate);

// Slurm's question, answered within 30 seconds; no answer is No.
bool person_agrees(const std::string& question = "Would you like to commit changes?");

// Says why on standard error; the exit status.
int say_refusal(const Error& error);

}  // namespace gantry::cli::slurm
