// The verbs of sacctmgr that change something.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// Runs one verb. `verb` is add, modify, delete, dump or load; `words` are the words after it.
// Returns the exit status.
Result<int> change_accounts(const Invocation& call, std::string_view verb,
                            const std::vector<std::string>& words, bool immediate);

// Runs `add qos`, `modify qos` or `delete qos`. `words` begins with the entity. Returns the exit
// status.
Result<int> change_qos(const Invocation& call, std::string_view verb,
                       const std::vector<std::string>& words, bool immediate);

// True if the words begin with "cluster".
bool names_clusters(const std::vector<std::string>& words);

// Runs `add cluster`, `modify cluster` or `delete cluster`. Returns the exit status.
Result<int> change_clusters(const Invocation& call, std::string_view verb,
                            const std::vector<std::string>& words, bool immediate);

// True if the words begin with "resource".
bool names_resources(const std::vector<std::string>& words);

// Runs `add resource`, `modify resource` or `delete resource`. Returns the exit status.
Result<int> change_resources(const Invocation& call, std::string_view verb,
                             const std::vector<std::string>& words, bool immediate);

// True if the words begin with "job".
bool names_jobs(const std::vector<std::string>& words);

// Runs `modify job`, which changes notes about jobs in the accounting. Returns the exit status.
Result<int> change_jobs(const Invocation& call, std::string_view verb,
                        const std::vector<std::string>& words, bool immediate);

// Asks Slurm's question. The user has 30 seconds to answer; no answer means No.
bool person_agrees(const std::string& question = "Would you like to commit changes?");

// Prints the reason on standard error and returns the exit status.
int say_refusal(const Error& error);

}  // namespace gantry::cli::slurm
