// --container-image: the name that the user wrote, as one of a few forms.
//
//   /DIR                          an unpacked root file system, used in place
//   /FILE.sqsh, /FILE.squashfs, /FILE.sqfs
//   oci:DIR[:REF]  oci-archive:FILE[:REF]  docker-archive:FILE[:REF]
//   docker://HOST/IMAGE[:TAG|@DIGEST]  HOST#IMAGE[:TAG]  IMAGE[:TAG]
#pragma once

#include <string>

#include "common/result.h"

namespace gantry::runtime {

enum class ImageKind { none, directory, squashfs, copied };

struct ImageReference {
  ImageKind kind = ImageKind::none;
  std::string source;  // a path, or skopeo's name for it: "docker://...", "oci:/..."
  // For kind `copied`: the directory or file that holds the image; "" = it is in a registry.
  std::string file;
};
Result<ImageReference> parse_image(const std::string& reference, const std::string& work_dir);

// Is the registry on this machine itself? Then it may speak HTTP without TLS.
bool is_on_loopback(const std::string& source);

}  // namespace gantry::runtime
