// The host's directories in a container without an image, and the user's own ones in any.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// Read-only copies of the host's top-level directories below `root`, an empty directory of a tmpfs.
Result<void> host_directories(const std::string& root);

// Home (host view only), working directory and the node's writable paths, with write access where
// the user has it on the host.
Result<void> own_directories(const NodeSetup& setup, const LaunchRequest& request,
                             const std::string& root, bool image);

}  // namespace gantry::runtime
