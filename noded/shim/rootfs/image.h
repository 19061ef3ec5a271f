// --container-image: how the name that the user wrote becomes a directory that can be the root of a
// container.
//
//   copied     by skopeo, as the user, into a directory of the user -> nothing there is trusted
//   taken in   read by a process that is the user, checked by digest -> only root can write it
//   unpacked   from a layout written here, by a process with a user id of its own, in a cgroup,
//              without network                                       -> the node's cache, by key
//
// A squashfs file is taken in and unpacked the same way: the kernel never mounts a user's image.
// noded/image/store.h says who may use what is in the cache.
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

// noded.image_check: a program of the operator's looks at each image before its first use on the
// node, and may refuse it.

// `tree` is the unpacked image in the node's cache. A program that let it pass is not asked again,
// as long as neither the program's file nor its arguments change. permission_denied: it refused;
// the message is the last line that it said.
Result<void> check_image(const Shim& shim, const std::string& name, const std::string& tree,
                         Signals& signals);

// An image that can change after it was looked at cannot be used where images are looked at.
Result<void> check_directory(const Shim& shim, const std::string& path);

}  // namespace gantry::runtime
