// Keys that are in the state directory at the start: the first identities of a new cluster.
#pragma once

#include <string>
#include <vector>

#include "ctld/shell.h"

namespace gantry::ctld {

// Passes the keys in nodes.d and users.d to the core. Returns the files that have one.
std::vector<std::string> enroll_from_files(const Shell& shell);
// Renames these files, because their keys are durable now.
void key_files_used(const Shell& shell, const std::vector<std::string>& paths);

}  // namespace gantry::ctld
