// --container-image: the name that the user wrote, as one of a few forms.
//
//   /DIR                          an unpacked root file system, used in place
//   /FILE.sqsh, /FILE.squashfs, /FILE.sqfs
//   oci:DIR[:REF]  oci-archive:FILE[:REF]  docker-archive:FILE[:REF]
//   docker://HOST/IMAGE[:TAG|@DIGEST]  HOST#IMAGE[:TAG]  IMAGE[:TAG]
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <string>
#include <string_view>

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

// SHA-256 of data that comes in pieces.

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void add(std::string_view bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }
  std::string hex();  // 64 hex digits; no more may be added afterwards

 private:
  crypto_hash_sha256_state state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace gantry::runtime
