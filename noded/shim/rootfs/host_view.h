// Shows the host's directories in a container without an image, and the user's own ones in any
// container.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// Unmounts kernel interfaces (proc, sysfs, cgroups ...) that are below `root` as part of a mounted
// tree, for example from a chroot in a user's home: they would show the host's processes and
// devices. Call it when all mounts are made; the OCI runtime mounts the container's own interfaces
// later.
Result<void> drop_pseudo(const std::string& root);

// Makes read-only copies of the host's top-level directories below `root`, which is an empty
// directory of a tmpfs.
Result<void> host_directories(const std::string& root);

// Shows home (only in the host view), the working directory and the node's writable paths. The job
// may write where the user may write on the host.
Result<void> own_directories(const NodeSetup& setup, const LaunchRequest& request,
                             const std::string& root, bool image);

}  // namespace gantry::runtime
