// --container-mounts: SRC:DST[:ro|rw]. Binds SRC into a container's root, with the user's own
// rights.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/machine/files.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

struct MountSpec {
  std::string source;
  std::string target;
  enum class Mode { as_allowed, read_only, read_write } mode = Mode::as_allowed;
};

// Without a mode the mount is writable if the user may write to the source.
Result<MountSpec> parse_mount(const std::string& text);

// Returns the place in `root` for the mount. A missing one is made: by root in the container's own
// file systems, with the user's rights anywhere else.
Result<Fd> mount_point(const LaunchRequest& request, const Fd& root, const std::string& path,
                       bool directory);

// Makes the mount points for the driver's files in an image: the OCI runtime, which is root only
// inside the container, cannot make them.
Result<void> driver_mount_points(const LaunchRequest& request, const std::string& root);

Result<void> user_mounts(const LaunchRequest& request, const std::string& root);

// The site's storage in a job: everything below noded.storage is hidden in the shim's own mounts,
// and what the job may see is mounted again. All that the shim does for the job later, by any name,
// reaches only that.

// Call it right after enter_private_mounts(). Errors name a missing directory.
Result<void> fence_storage(const NodeSetup& setup, const LaunchRequest& request);

// Shows the same directories in the container, at their own paths.
Result<void> show_storage(const LaunchRequest& request, const std::string& root);

}  // namespace gantry::runtime
