#include "noded/image/manifest.h"

#include <fmt/core.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <array>

namespace gantry::runtime {

namespace {

using rapidjson::Value;

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxIndexEntries = 256;
constexpr std::int64_t kMaxBlob = std::int64_t{1} << 44;

tl::unexpected<Error> bad(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

std::string_view view(const Value& v) {
  return {v.GetString(), v.GetStringLength()};
}

// The name of a member that occurs twice in one object of the document.
std::optional<std::string> doubled_member(const Value& top) {
  std::vector<const Value*> open{&top};
  while (!open.empty()) {
    const Value* at = open.back();
    open.pop_back();
    if (at->IsArray())
      for (const Value& v : at->GetArray()) open.push_back(&v);
    if (!at->IsObject()) continue;
    std::vector<std::string_view> names;
    for (const auto& member : at->GetObject()) {
      names.push_back(view(member.name));
      open.push_back(&member.value);
    }
    std::ranges::sort(names);
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return std::string(twice->substr(0, 64));
  }
  return std::nullopt;
}

bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
    if (depth > kMaxDepth) return true;
  }
  return false;
}

Result<rapidjson::Document> parse_strictly(std::string_view text, std::string_view what) {
  if (text.size() > kMaxImageJson)
    return bad(fmt::format("its {} has more than {} bytes", what, kMaxImageJson));
  rapidjson::Document document;
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  if (too_deep(text) || document.Parse<kFlags>(text.data(), text.size()).HasParseError() ||
      !document.IsObject())
    return bad(fmt::format("its {} is not a JSON object", what));
  if (const auto twice = doubled_member(document))
    return bad(fmt::format("its {} has '{}' twice", what, *twice));
  return document;
}

const Value* member(const Value& object, const char* name) {
  const auto it = object.FindMember(name);
  return it == object.MemberEnd() ? nullptr : &it->value;
}

std::string text_of(const Value& object, const char* name) {
  const Value* v = member(object, name);
  return v != nullptr && v->IsString() ? std::string(view(*v)) : std::string();
}

std::vector<std::string> texts_of(const Value& object, const char* name) {
  std::vector<std::string> out;
  const Value* v = member(object, name);
  if (v == nullptr || !v->IsArray()) return out;
  for (const Value& e : v->GetArray())
    if (e.IsString()) out.emplace_back(view(e));
  return out;
}

Result<std::string> hex_of(std::string_view digest) {
  const auto hex = digest.starts_with("sha256:") ? digest.substr(7) : std::string_view();
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return bad(fmt::format("'{}' is not a sha256 digest", digest.substr(0, 100)));
  return std::string(hex);
}

template <std::size_t N>
Result<Blob> read_descriptor(const Value& v, const std::array<std::string_view, N>& types) {
  if (!v.IsObject()) return bad("a descriptor of its manifest is not an object");
  const auto type = text_of(v, "mediaType");
  if (std::ranges::find(types, type) == types.end())
    return bad(fmt::format("the media type '{}' is not supported", type.substr(0, 100)));
  ASSIGN(digest, hex_of(text_of(v, "digest")));
  const Value* size = member(v, "size");
  if (size == nullptr || !size->IsInt64() || size->GetInt64() < 0 || size->GetInt64() > kMaxBlob)
    return bad("a descriptor of its manifest has no proper size");
  return Blob{std::move(*digest), size->GetInt64()};
}

constexpr std::array<std::string_view, 2> kManifestTypes{
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json"};
constexpr std::array<std::string_view, 2> kIndexTypes{
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json"};
constexpr std::array<std::string_view, 2> kConfigTypes{
    "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"};
constexpr std::array<std::string_view, 4> kLayerTypes{
    "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip"};

constexpr std::size_t kMaxReference = 4096;

std::string absolute(const std::string& work_dir, const std::string& path) {
  return path.starts_with("/") ? path : work_dir + "/" + path;
}

tl::unexpected<Error> bad(const std::string& reference, const std::string& why) {
  return fail(ErrorCode::invalid_argument, "image " + reference + ": " + why);
}

bool is_squashfs_name(std::string_view path) {
  return path.ends_with(".sqsh") || path.ends_with(".squashfs") || path.ends_with(".sqfs");
}

// A name in a registry must not have characters that skopeo or a URL would interpret.
Result<ImageReference> registry(const std::string& reference, std::string rest) {
  if (const auto hash = rest.find('#'); hash != std::string::npos) rest[hash] = '/';
  const auto usual = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:@[]").find(c) != std::string_view::npos;
  };
  if (rest.empty()) return bad(reference, "no name");
  if (rest.front() == '-' || !std::ranges::all_of(rest, usual))
    return bad(reference, "a name in a registry has letters, digits and . _ - / : @ only");
  return ImageReference{ImageKind::copied, "docker://" + rest, ""};
}

}  // namespace

std::int64_t Manifest::size() const {
  std::int64_t sum = config.size;
  for (const Blob& layer : layers) sum += layer.size;
  return sum;
}

Result<Manifest> parse_manifest(std::string_view text) {
  ASSIGN(document, parse_strictly(text, "manifest"));
  const Value* version = member(*document, "schemaVersion");
  if (version == nullptr || !version->IsInt() || version->GetInt() != 2)
    return bad("its manifest is not of schema version 2");
  if (const Value* type = member(*document, "mediaType"))
    if (!type->IsString() || std::ranges::find(kManifestTypes, view(*type)) == kManifestTypes.end())
      return bad("its manifest is of no supported media type");
  if (member(*document, "manifests") != nullptr)
    return bad("its manifest is an index of manifests as well");
  const Value* config = member(*document, "config");
  const Value* layers = member(*document, "layers");
  if (config == nullptr || layers == nullptr || !layers->IsArray() || layers->Empty())
    return bad("its manifest has no configuration or no layers");
  if (layers->Size() > kMaxLayers)
    return bad(fmt::format("it has {} layers; at most {} are allowed", layers->Size(), kMaxLayers));
  Manifest out;
  ASSIGN(read, read_descriptor(*config, kConfigTypes));
  out.config = std::move(*read);
  for (const Value& layer : layers->GetArray()) {
    ASSIGN(blob, read_descriptor(layer, kLayerTypes));
    out.layers.push_back(std::move(*blob));
  }
  return out;
}

Result<std::string> platform_manifest(std::string_view text, std::string_view architecture) {
  ASSIGN(document, parse_strictly(text, "manifest"));
  const Value* list = member(*document, "manifests");
  if (list == nullptr) return std::string();
  if (!list->IsArray() || list->Size() > kMaxIndexEntries)
    return bad("its index of manifests is not a list, or too long");
  if (const Value* type = member(*document, "mediaType"))
    if (!type->IsString() || std::ranges::find(kIndexTypes, view(*type)) == kIndexTypes.end())
      return bad("its index is of no supported media type");
  for (const Value& entry : list->GetArray()) {
    if (!entry.IsObject()) return bad("an entry of its index is not an object");
    const Value* platform = member(entry, "platform");
    if (platform == nullptr || !platform->IsObject() || text_of(*platform, "os") != "linux" ||
        text_of(*platform, "architecture") != architecture)
      continue;
    ASSIGN(blob, read_descriptor(entry, kManifestTypes));
    return blob->digest;
  }
  return bad(fmt::format("it has nothing for linux on {}", architecture));
}

Result<std::string> layout_manifest(std::string_view index, std::string_view tag) {
  ASSIGN(document, parse_strictly(index, "index"));
  const Value* list = member(*document, "manifests");
  if (list == nullptr || !list->IsArray() || list->Size() > kMaxIndexEntries)
    return bad("its index of manifests is not a list, or too long");
  const Value* found = nullptr;
  for (const Value& entry : list->GetArray()) {
    if (!entry.IsObject()) return bad("an entry of its index is not an object");
    const Value* notes = member(entry, "annotations");
    const bool named = notes != nullptr && notes->IsObject() &&
                       text_of(*notes, "org.opencontainers.image.ref.name") == tag;
    if (!tag.empty() && !named) continue;
    if (found != nullptr) return bad("its index has more than one such manifest");
    found = &entry;
  }
  if (found == nullptr) return bad("its index has no such manifest");
  ASSIGN(blob, read_descriptor(*found, kManifestTypes));
  return blob->digest;
}

std::string_view this_architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#elif defined(__powerpc64__)
  return "ppc64le";
#else
  return "unknown";
#endif
}

std::string key_of(const Manifest& manifest) {
  std::string text = "gantry image 1\nconfig " + manifest.config.digest + "\n";
  for (const Blob& layer : manifest.layers) text += "layer " + layer.digest + "\n";
  return sha256_hex(text);
}

std::string key_of_squashfs(std::string_view digest) {
  return sha256_hex("gantry squashfs 1\n" + std::string(digest) + "\n");
}

Result<ImageMeta> parse_image_config(std::string_view text, std::size_t layers) {
  ASSIGN(document, parse_strictly(text, "configuration"));
  ImageMeta out;
  const Value* rootfs = member(*document, "rootfs");
  if (rootfs == nullptr || !rootfs->IsObject() || text_of(*rootfs, "type") != "layers")
    return bad("its configuration does not say what its layers are");
  for (const auto& id : texts_of(*rootfs, "diff_ids")) {
    ASSIGN(hex, hex_of(id));
    out.diff_ids.push_back(std::move(*hex));
  }
  if (out.diff_ids.size() != layers)
    return bad(fmt::format("its configuration speaks of {} layers, its manifest of {}",
                           out.diff_ids.size(), layers));
  const Value* config = member(*document, "config");
  if (config == nullptr || !config->IsObject()) return out;
  out.config.env = texts_of(*config, "Env");
  out.config.work_dir = text_of(*config, "WorkingDir");
  out.config.entrypoint = texts_of(*config, "Entrypoint");
  return out;
}

std::vector<LayoutFile> minimal_layout(const std::vector<LayerForm>& layers) {
  const auto descriptor = [](std::string_view type, std::string_view digest, std::size_t size) {
    return fmt::format(R"({{"mediaType":"application/vnd.oci.image.{}","digest":"sha256:{}",)"
                       R"("size":{}}})",
                       type, digest, size);
  };
  std::string ids, list;
  for (const LayerForm& layer : layers) {
    const std::string_view comma = ids.empty() ? "" : ",";
    ids += fmt::format("{}\"sha256:{}\"", comma, layer.diff_id);
    list += comma;
    list += descriptor(layer.gzip ? "layer.v1.tar+gzip" : "layer.v1.tar", layer.blob.digest,
                       static_cast<std::size_t>(layer.blob.size));
  }
  const std::string config =
      fmt::format(R"({{"architecture":"{}","os":"linux","config":{{}},"rootfs":{{"type":"layers",)"
                  R"("diff_ids":[{}]}}}})",
                  this_architecture(), ids);
  const std::string manifest =
      fmt::format(R"({{"schemaVersion":2,"config":{},"layers":[{}]}})",
                  descriptor("config.v1+json", sha256_hex(config), config.size()), list);
  std::string entry = descriptor("manifest.v1+json", sha256_hex(manifest), manifest.size());
  entry.pop_back();
  const std::string index = fmt::format(R"({{"schemaVersion":2,"manifests":[{},"annotations":)"
                                        R"({{"org.opencontainers.image.ref.name":"image"}}}}]}})",
                                        entry);
  return {{"oci-layout", R"({"imageLayoutVersion":"1.0.0"})"},
          {"index.json", index},
          {"blobs/sha256/" + sha256_hex(config), config},
          {"blobs/sha256/" + sha256_hex(manifest), manifest}};
}

Result<ImageReference> parse_image(const std::string& reference, const std::string& work_dir) {
  if (reference.empty()) return ImageReference{};
  if (reference.size() > kMaxReference)
    return fail(ErrorCode::invalid_argument, "the image's name has more than 4096 bytes");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(reference, control))
    return fail(ErrorCode::invalid_argument, "the image's name holds a control character");
  for (const std::string_view scheme : {"oci:", "oci-archive:", "docker-archive:"}) {
    if (!reference.starts_with(scheme)) continue;
    const std::string rest = reference.substr(scheme.size());
    if (rest.empty() || rest.front() == ':') return bad(reference, "no name");
    const std::string path = absolute(work_dir, rest);
    return ImageReference{ImageKind::copied, std::string(scheme) + path,
                          path.substr(0, path.find(':'))};
  }
  constexpr std::string_view kDocker = "docker://";
  if (reference.starts_with(kDocker)) return registry(reference, reference.substr(kDocker.size()));
  if (reference.starts_with("/") || reference.starts_with("./") || reference.starts_with("../")) {
    const auto path = absolute(work_dir, reference);
    return ImageReference{is_squashfs_name(path) ? ImageKind::squashfs : ImageKind::directory, path,
                          ""};
  }
  if (reference.find("://") != std::string::npos)
    return bad(reference,
               "expected docker://, oci:, oci-archive:, docker-archive:, a directory or a "
               ".sqsh file");
  return registry(reference, reference);
}

bool is_on_loopback(const std::string& source) {
  constexpr std::string_view kDocker = "docker://";
  if (!source.starts_with(kDocker)) return false;
  const auto rest = std::string_view(source).substr(kDocker.size());
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos) return false;  // the name is in the default registry
  auto host = rest.substr(0, slash);
  const auto colon = host.rfind(':'), bracket = host.rfind(']');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket))
    host = host.substr(0, colon);
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

std::string Sha256::hex() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> bytes{};
  crypto_hash_sha256_final(&state_, bytes.data());
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char b : bytes) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

}  // namespace gantry::runtime
