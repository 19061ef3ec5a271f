// Reading an OCI image layout (index.json, manifest, configuration). The layout belongs to the
// job's user, so it is read with care: digests must look like digests, sizes are limited.
#include <rapidjson/document.h>

#include "noded/shim/image_cache.h"

namespace gantry::runtime {
namespace {

constexpr std::size_t kMaxJson = 4u << 20;

Result<rapidjson::Document> parse_file(const std::string& path) {
  const auto text = read_file(path, kMaxJson);
  if (!text) return tl::unexpected(text.error());
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text->data(), text->size());
  if (document.HasParseError() || !document.IsObject())
    return fail(ErrorCode::malformed, path + ": not a JSON object");
  return document;
}

// "sha256:64 hex digits" to the blob's path.
Result<std::string> blob_path(const std::string& layout, const std::string& digest) {
  const auto hex = digest.starts_with("sha256:") ? digest.substr(7) : std::string();
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return fail(ErrorCode::malformed, "digest '" + digest + "' is not a sha256 digest");
  return layout + "/blobs/sha256/" + hex;
}

std::string text_of(const rapidjson::Value& object, const char* name) {
  const auto it = object.FindMember(name);
  return it != object.MemberEnd() && it->value.IsString()
             ? std::string(it->value.GetString(), it->value.GetStringLength())
             : std::string();
}

std::vector<std::string> texts_of(const rapidjson::Value& object, const char* name) {
  std::vector<std::string> out;
  const auto it = object.FindMember(name);
  if (it == object.MemberEnd() || !it->value.IsArray()) return out;
  for (const auto& v : it->value.GetArray())
    if (v.IsString()) out.emplace_back(v.GetString(), v.GetStringLength());
  return out;
}

std::string find_digest(const rapidjson::Document& index, const std::string& tag) {
  const auto it = index.FindMember("manifests");
  if (it == index.MemberEnd() || !it->value.IsArray()) return {};
  for (const auto& entry : it->value.GetArray()) {
    if (!entry.IsObject()) continue;
    const auto notes = entry.FindMember("annotations");
    if (notes == entry.MemberEnd() || !notes->value.IsObject()) continue;
    if (text_of(notes->value, "org.opencontainers.image.ref.name") == tag)
      return text_of(entry, "digest");
  }
  return {};
}

}  // namespace

Result<LayoutImage> read_layout(const std::string& layout, const std::string& tag) {
  auto index = parse_file(layout + "/index.json");
  if (!index) return tl::unexpected(index.error());
  LayoutImage image;
  image.digest = find_digest(*index, tag);
  const auto manifest_path = blob_path(layout, image.digest);
  if (!manifest_path) return tl::unexpected(manifest_path.error());
  auto manifest = parse_file(*manifest_path);
  if (!manifest) return tl::unexpected(manifest.error());
  const auto config_at = manifest->FindMember("config");
  if (config_at == manifest->MemberEnd() || !config_at->value.IsObject())
    return fail(ErrorCode::malformed, "the image's manifest has no configuration");
  const auto config_path = blob_path(layout, text_of(config_at->value, "digest"));
  if (!config_path) return tl::unexpected(config_path.error());
  auto blob = parse_file(*config_path);
  if (!blob) return tl::unexpected(blob.error());
  const auto config = blob->FindMember("config");
  if (config == blob->MemberEnd() || !config->value.IsObject()) return image;
  image.config.env = texts_of(config->value, "Env");
  image.config.work_dir = text_of(config->value, "WorkingDir");
  image.config.entrypoint = texts_of(config->value, "Entrypoint");
  return image;
}

}  // namespace gantry::runtime
