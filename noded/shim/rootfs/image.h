// --container-image: from what the user wrote to a directory that can be the root of a container.
//
//   copied     skopeo, as the user, into a directory of the user's  -> nothing of it is believed
//   taken in   read by a process that is the user, checked by digest -> where only root writes
//   unpacked   from a layout written here, by a process with a user id of its own, in a cgroup,
//              without network                                      -> the node's cache, by key
//
// A squashfs file is taken in and unpacked the same way: the kernel mounts nothing of a user's.
// noded/image/store.h says who may use what is in the cache.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/image/reference.h"
#include "noded/shim/environment.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

struct ImageUse {
  ImageKind kind = ImageKind::none;
  std::string path;  // the directory
  ImageConfig config;
  Fd held;  // while it is open, the cache keeps the image
  Fd root;  // after mount_image()
};

// In the host's mounts; may take minutes when the image is not in the cache.
Result<void> fetch_image(const Shim& shim, ImageUse& image, Signals& signals);
// In the shim's private mounts: opens it.
Result<void> mount_image(const Shim& shim, ImageUse& image, Signals& signals);

}  // namespace gantry::runtime
