// The site's storage in a job: everything below noded.storage is covered in the shim's own mounts,
// and what the job may see is put back. All that the shim does for the job later, by whatever name,
// finds only that.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// Call it right after enter_private_mounts(). Errors name the directory that is not there.
Result<void> fence_storage(const NodeSetup& setup, const LaunchRequest& request);

// Shows the same directories in the container, at their own paths.
Result<void> show_storage(const LaunchRequest& request, const std::string& root);

}  // namespace gantry::runtime
