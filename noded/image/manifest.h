// Reads an image's manifest and configuration, and writes a new layout, which is unpacked instead
// of the user's.
//
// Both come from a job's user, so they are read strictly: one JSON object, no member twice, only
// known media types, digests that are sha256, sizes and counts within limits. No other program ever
// reads them: the program that unpacks gets a layout written here, so it cannot understand them
// differently.
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/result.h"

namespace gantry::runtime {

// --container-image: the text of the user, in one of a few forms.
//
//   /DIR                          an unpacked root file system, used in place
//   /FILE.sqsh, /FILE.squashfs, /FILE.sqfs
//   oci:DIR[:REF]  oci-archive:FILE[:REF]  docker-archive:FILE[:REF]
//   docker://HOST/IMAGE[:TAG|@DIGEST]  HOST#IMAGE[:TAG]  IMAGE[:TAG]
enum class ImageKind { none, directory, squashfs, copied };

struct ImageReference {
  ImageKind kind = ImageKind::none;
  std::string source;  // a path, or skopeo's name for it: "docker://...", "oci:/..."
  // For kind `copied`: the directory or file with the image; "" = it is in a registry.
  std::string file;
};
Result<ImageReference> parse_image(const std::string& reference, const std::string& work_dir);

// Whether the registry is on this machine itself; then it may use HTTP without TLS.
bool is_on_loopback(const std::string& source);

// SHA-256 of data that comes in pieces.
class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void add(std::string_view bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }
  std::string hex();  // 64 hex digits; call it once, after all data

 private:
  crypto_hash_sha256_state state_;
};

std::string sha256_hex(std::string_view bytes);

inline constexpr std::size_t kMaxImageJson = 4u << 20;  // bytes of a manifest or configuration
inline constexpr std::size_t kMaxLayers = 512;

// The parts that are taken from an image's configuration; nothing else of it is used.
struct ImageConfig {
  std::vector<std::string> env;  // "NAME=value"
  std::string work_dir;
  std::vector<std::string> entrypoint;  // ignored for a batch script, as with Slurm and pyxis
  GANTRY_FIELDS(FIELD(1, env), FIELD(2, work_dir), FIELD(3, entrypoint))
};

struct Blob {
  std::string digest;  // 64 hex digits of sha256
  std::int64_t size = 0;
};

struct Manifest {
  Blob config;
  std::vector<Blob> layers;  // the lowest layer first
  [[nodiscard]] std::int64_t size() const;
};

// Parses an OCI manifest, or Docker's of schema 2. The error invalid_argument tells what is wrong
// with it.
Result<Manifest> parse_manifest(std::string_view text);

// Returns "" if the text is no index of several manifests; otherwise the digest of the first
// manifest for `architecture` ("amd64") and linux.
Result<std::string> platform_manifest(std::string_view text, std::string_view architecture);
std::string_view this_architecture();

// Reads an OCI layout's index.json: returns the digest of the manifest with this tag, or of the
// only one if `tag` is empty. Error invalid_argument: there is none, or there are several.
Result<std::string> layout_manifest(std::string_view index, std::string_view tag);

// The name of an image in the cache: a digest of everything that affects how it is unpacked.
// Knowing a key gives no right to the image; other content has another key.
std::string key_of(const Manifest& manifest);
std::string key_of_squashfs(std::string_view digest);

struct ImageMeta {
  ImageConfig config;
  std::vector<std::string> diff_ids;  // sha256 of each layer's tar, 64 hex digits
};
Result<ImageMeta> parse_image_config(std::string_view text, std::size_t layers);

// Files of an OCI layout with one image, tag "image", without the layers' blobs.
struct LayoutFile {
  std::string path;  // path within the layout
  std::string text;
};
struct LayerForm {
  Blob blob;
  std::string diff_id;
  bool gzip = false;
};
std::vector<LayoutFile> minimal_layout(const std::vector<LayerForm>& layers);

}  // namespace gantry::runtime
