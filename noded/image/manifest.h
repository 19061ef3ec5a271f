// What an image's manifest and configuration say, and the layout that is unpacked in its stead.
//
// Both come from a job's user, so they are read strictly: one JSON object, no member twice, known
// media types only, digests that are sha256, sizes and counts within limits. Nobody else ever reads
// them: the program that unpacks gets a layout written here from what was understood here, so there
// is no second reading that could differ from the first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::runtime {

inline constexpr std::size_t kMaxImageJson = 4u << 20;  // bytes of a manifest or configuration
inline constexpr std::size_t kMaxLayers = 512;

// From an image: nothing else of its configuration is believed.
struct ImageConfig {
  std::vector<std::string> env;  // "NAME=value"
  std::string work_dir;
  std::vector<std::string> entrypoint;  // for a batch script: not used, as with Slurm and pyxis
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "env", s.env);
    v(2, "work_dir", s.work_dir);
    v(3, "entrypoint", s.entrypoint);
  }
};

struct Blob {
  std::string digest;  // 64 hex digits of sha256
  std::int64_t size = 0;
};

struct Manifest {
  Blob config;
  std::vector<Blob> layers;  // the lowest first
  [[nodiscard]] std::int64_t size() const;
};

// An OCI manifest, or Docker's of schema 2. invalid_argument says what is wrong with it.
Result<Manifest> parse_manifest(std::string_view text);

// "" when the text is no index of several manifests; else the digest of the first that is for
// `architecture` ("amd64") and linux.
Result<std::string> platform_manifest(std::string_view text, std::string_view architecture);
std::string_view this_architecture();

// From an OCI layout's index.json: the digest of the manifest with this tag, or of the only one
// there is when `tag` is empty. invalid_argument: there is none, or more than one.
Result<std::string> layout_manifest(std::string_view index, std::string_view tag);

// The name of an image in the cache: the digest of what decides how it is unpacked. Whoever knows
// a key has no right by it; whoever brings other content has another key.
std::string key_of(const Manifest& manifest);
std::string key_of_squashfs(std::string_view digest);

struct ImageMeta {
  ImageConfig config;
  std::vector<std::string> diff_ids;  // sha256 of each layer's tar, 64 hex digits
};
Result<ImageMeta> parse_image_config(std::string_view text, std::size_t layers);

// Files of an OCI layout with one image, tag "image", besides its layers' blobs.
struct LayoutFile {
  std::string path;  // within the layout
  std::string text;
};
struct LayerForm {
  Blob blob;
  std::string diff_id;
  bool gzip = false;
};
std::vector<LayoutFile> minimal_layout(const std::vector<LayerForm>& layers);

}  // namespace gantry::runtime
