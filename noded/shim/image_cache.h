// Images that must be copied and unpacked before use: once per node and digest.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/shim/environment.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

struct CachedImage {
  std::string rootfs;
  ImageConfig config;
};

// `source` as skopeo takes it.
Result<CachedImage> cached_image(const Shim& shim, const std::string& source, Signals& signals);

// From an OCI layout: digest of the manifest that `tag` names, and the image's configuration.
struct LayoutImage {
  std::string digest;  // "sha256:..."
  ImageConfig config;
};
Result<LayoutImage> read_layout(const std::string& layout, const std::string& tag);

}  // namespace gantry::runtime
