#include "ctld/secrets/jwt.h"

#include <sodium.h>

#include <fmt/core.h>

namespace gantry::secrets {
namespace {

std::string part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("._@+-").find(c) != std::string_view::npos;
    if (kept)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::string base64url(std::string_view octets) {
  constexpr int kForm = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::string out(sodium_base64_encoded_len(octets.size(), kForm), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(octets.data()),
                    octets.size(), kForm);
  out.pop_back();  // the zero at the end
  return out;
}

std::optional<std::string> from_base64url(std::string_view text) {
  std::string out(text.size(), '\0');
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(),
                        text.size(), nullptr, &size, nullptr,
                        sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
    return std::nullopt;
  out.resize(size);
  return out;
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string subject_of(const Claims& claims) {
  return fmt::format("tenant:{}:project:{}:user:{}", part(claims.tenant), part(claims.project),
                     part(claims.user));
}

std::string claims_json(const Claims& c) {
  const auto seconds = [](Instant at) { return at.us / 1'000'000; };
  return fmt::format(R"({{"iss":{},"sub":{},"aud":{},"iat":{},"nbf":{},"exp":{},"jti":{},)"
                     R"("tenant":{},"project":{},"user":{},"job":"{}","attempt":"{}","node":{}}})",
                     json_text(c.issuer), json_text(subject_of(c)), json_text(c.audience),
                     seconds(c.from), seconds(c.from), seconds(c.until), json_text(c.id),
                     json_text(c.tenant), json_text(c.project), json_text(c.user), c.job, c.attempt,
                     json_text(c.node));
}

std::string unsigned_token(const Claims& claims, std::string_view key_id) {
  const std::string header =
      fmt::format(R"({{"alg":"ES256","typ":"JWT","kid":{}}})", json_text(key_id));
  return base64url(header) + "." + base64url(claims_json(claims));
}

}  // namespace gantry::secrets
