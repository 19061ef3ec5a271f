// The host's directories in a container without an image, and the user's own ones in any.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// Unmounts kernel interfaces (proc, sysfs, cgroups ...) that came along below `root`, in a chroot
// in somebody's home for instance: they would show the host's processes and devices. Call it when
// all mounts are made; the OCI runtime mounts the container's own later.
Result<void> drop_pseudo(const std::string& root);

// Read-only copies of the host's top-level directories below `root`, an empty directory of a tmpfs.
Result<void> host_directories(const std::string& root);

// Home (host view only), working directory and the node's writable paths, with write access where
// the user has it on the host.
Result<void> own_directories(const NodeSetup& setup, const LaunchRequest& request,
                             const std::string& root, bool image);

}  // namespace gantry::runtime
