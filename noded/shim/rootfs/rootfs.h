// The root directory of a container, built in the shim's private mount namespace: nothing of it is
// ever visible on the host, and all of it disappears with the last process of the job.
//
// Host view (no image): a read-only view of the host's directories, without pseudo file systems,
// /run and /tmp; the user's home and working directory and the configured paths are writable.
// Image: an overlay on the unpacked image. Both get a private /tmp and /var/tmp, /run/gantry, and
// the mounts that the user asked for, each within what the user may read and write.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/machine/files.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

struct RootPlan {
  const Fd* image = nullptr;  // nullptr = host view; else the image's directory
  std::string run_dir;        // bound read-only at /run/gantry
  std::string secrets_dir;    // "" = none; bound read-only at kSecretsInside
  std::string scratch_dir;    // "" = /tmp is a tmpfs; otherwise /tmp is this directory
  std::string image_cwd;      // WorkingDir of the image
};

struct Root {
  std::string path;
  std::string cwd;
  bool read_only = true;
};

// Leaves the host's mount namespace for good; a rootless shim also leaves the user namespace.
Result<void> enter_private_mounts(const NodeSetup& setup, const LaunchRequest& request);

// Call it after enter_private_mounts(). Only root can reach the sources of some binds on the node.
// This moves those binds into the shim's own mounts, where the OCI runtime can reach them with the
// container's ids.
Result<void> private_binds(const NodeSetup& setup, LaunchRequest& request);

// Call it after enter_private_mounts(). Errors name the directory or mount that is not available.
Result<Root> build_root(const NodeSetup& setup, const LaunchRequest& request, const RootPlan& plan);

}  // namespace gantry::runtime
