#include "gate/plan/keys.h"

#include <sodium.h>

#include "common/codec/json_io.h"

namespace gantry::gate {
namespace {

constexpr std::size_t kCoordinate = 32;  // octets, of P-256
// The head of a SubjectPublicKeyInfo for a point of P-256 that is not compressed (RFC 5480).
constexpr std::string_view kHead(
    "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
    "\x03\x42\x00\x04",
    27);
constexpr std::size_t kLine = 64;

std::string octets_of(std::string_view base64url) {
  std::string out(base64url.size(), '\0');
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), base64url.data(),
                        base64url.size(), nullptr, &size, nullptr,
                        sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
    return {};
  out.resize(size);
  return out;
}

std::string pem_of(const std::string& x, const std::string& y) {
  const std::string der = std::string(kHead) + x + y;
  std::string text(sodium_base64_encoded_len(der.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(der.data()),
                    der.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the zero at the end
  std::string out = "-----BEGIN PUBLIC KEY-----\n";
  for (std::size_t at = 0; at < text.size(); at += kLine) out += text.substr(at, kLine) + "\n";
  return out + "-----END PUBLIC KEY-----\n";
}

}  // namespace

Result<std::map<std::string, std::string>> pem_of_keys(const std::string& jwks) {
  std::map<std::string, std::string> out;
  if (jwks.empty()) return out;
  ASSIGN(document, codec::JsonDocument::parse(jwks));
  const auto keys = document->root().is_object() ? document->root().find("keys") : std::nullopt;
  if (!keys || !keys->is_array()) return fail(ErrorCode::malformed, "it is no set of keys");
  for (std::size_t i = 0; i < keys->size(); ++i) {
    const codec::JsonNode key = keys->item(i);
    if (!key.is_object()) continue;
    const auto text = [&](std::string_view name) {
      const auto node = key.find(name);
      return std::string(node && node->string() ? *node->string() : std::string_view());
    };
    const std::string x = octets_of(text("x")), y = octets_of(text("y"));
    if (text("kty") != "EC" || text("crv") != "P-256" || x.size() != kCoordinate ||
        y.size() != kCoordinate || text("kid").empty())
      continue;
    out[text("kid")] = pem_of(x, y);
  }
  return out;
}

}  // namespace gantry::gate
