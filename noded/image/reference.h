// --container-image: what the user wrote, as one of few forms.
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
  std::string source;  // a path, or what skopeo calls it: "docker://...", "oci:/..."
  std::string file;    // of copied ones: the directory or file it lies in; "" = in a registry
};
Result<ImageReference> parse_image(const std::string& reference, const std::string& work_dir);

// A registry on this very machine, which may speak HTTP without TLS.
bool is_on_loopback(const std::string& source);

}  // namespace gantry::runtime
