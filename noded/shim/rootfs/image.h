// --container-image: how the name from the user becomes a directory that can be the root of a
// container.
//
//   copied     by skopeo, as the user, into a directory of the user -> not trusted
//   taken in   read by a process with the user's ids, verified by digest -> only root can write it
//   unpacked   from a layout written here, by a process with its own user id, in a cgroup,
//              without network                                       -> the node's cache, by key
//
// A squashfs file is taken in and unpacked the same way: the kernel never mounts a user's image.
// noded/image/store.h has the rules for using images in the cache.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/image/manifest.h"
#include "noded/shim/environment.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

struct ImageUse {
  ImageKind kind = ImageKind::none;
  std::string path;  // the image's directory
  ImageConfig config;
  Fd held;  // while it is open, the cache keeps the image
  Fd root;  // set by mount_image()
};

// Call it in the host's mounts. It may take minutes if the image is not in the cache.
Result<void> fetch_image(const Shim& shim, ImageUse& image, Signals& signals);
// Call it in the shim's private mounts; it opens the image there.
Result<void> mount_image(const Shim& shim, ImageUse& image, Signals& signals);

// noded.image_check: a program of the operator checks each image before its first use on the node,
// and may refuse it.

// `tree` is the unpacked image in the node's cache. A program that accepted it is not run again,
// unless the program's file or its arguments change. Error permission_denied: it refused; the
// message is the last line of its output.
Result<void> check_image(const Shim& shim, const std::string& name, const std::string& tree,
                         Signals& signals);

// An image that can change after its check cannot be used on nodes with image checks.
Result<void> check_directory(const Shim& shim, const std::string& path);

}  // namespace gantry::runtime
