#include "noded/image/reference.h"

#include <algorithm>
#include <array>

namespace gantry::runtime {

namespace {

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

// A name in a registry may have no character that skopeo or a URL would read as something else.
Result<ImageReference> registry(const std::string& reference, std::string rest) {
  if (const auto hash = rest.find('#'); hash != std::string::npos) rest[hash] = '/';
  const auto usual = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:@[]").find(c) != std::string_view::npos;
  };
  if (rest.empty()) return bad(reference, "no name");
  if (rest.front() == '-' || !std::all_of(rest.begin(), rest.end(), usual))
    return bad(reference, "a name in a registry has letters, digits and . _ - / : @ only");
  return ImageReference{ImageKind::copied, "docker://" + rest, ""};
}

}  // namespace

Result<ImageReference> parse_image(const std::string& reference, const std::string& work_dir) {
  if (reference.empty()) return ImageReference{};
  if (reference.size() > kMaxReference)
    return fail(ErrorCode::invalid_argument, "the image's name has more than 4096 bytes");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(reference.begin(), reference.end(), control))
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
