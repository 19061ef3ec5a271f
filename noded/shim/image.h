// --container-image: from what the user wrote to a directory that can be the root of a container.
//
//   /DIR                          an unpacked root file system, used in place
//   /FILE.sqsh, /FILE.squashfs    mounted through a loop device
//   oci:DIR[:REF]  oci-archive:FILE[:REF]  docker-archive:FILE[:REF]
//   docker://HOST/IMAGE[:TAG|@DIGEST]  HOST#IMAGE[:TAG]  IMAGE[:TAG]
//                                 copied by skopeo as the user, so with the user's rights and
//                                 credentials, then unpacked once per node and digest
//
// The cache: <image_cache_dir>/users/<uid>/layout (an OCI layout of the user's own) and
// <image_cache_dir>/rootfs/<digest>, which only root enters: who may use it is decided by having
// been able to copy the image just now.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/shim/environment.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

enum class ImageKind { none, directory, squashfs, copied };

struct ImageUse {
  ImageKind kind = ImageKind::none;
  std::string path;  // directory, squashfs file, or the cache's directory
  ImageConfig config;
  Fd root;  // after mount_image()
};

// In the host's mounts; may take minutes when the image is not in the cache.
Result<void> fetch_image(const Shim& shim, ImageUse& image, Signals& signals);
// In the shim's private mounts: opens or mounts it.
Result<void> mount_image(const Shim& shim, ImageUse& image);

// What `reference` is, for skopeo ("docker://..."), or the path itself.
struct ImageReference {
  ImageKind kind = ImageKind::none;
  std::string source;
};
Result<ImageReference> parse_image(const std::string& reference, const std::string& work_dir);

}  // namespace gantry::runtime
