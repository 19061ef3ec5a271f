#include "common/auth/token.h"
#include "common/fields.h"

#include <fmt/core.h>
#include <sodium.h>

#include <array>

#include "common/auth/registered_key.h"
#include "common/codec/define.h"

namespace gantry::auth {
namespace {

constexpr int kUrlSafe = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
constexpr std::int64_t kLatest = INT64_MAX / 1'000'000;  // most seconds that an Instant can hold

std::string base64(std::string_view bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), kUrlSafe), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), kUrlSafe);
  text.pop_back();  // the terminating zero
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size(), '\0');
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, nullptr, kUrlSafe) != 0)
    return std::nullopt;
  bytes.resize(size);
  return bytes;
}

std::string mac_of(const SigningSeed& key, std::string_view text) {
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac{};
  crypto_auth_hmacsha256_state state;
  const std::string_view secret = key.view();
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret.data()),
                              secret.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(text.data()),
                                text.size());
  crypto_auth_hmacsha256_final(&state, mac.data());
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

struct Header {
  std::string alg, typ;
  GANTRY_FIELDS(FIELD(1, alg), FIELD(2, typ))
};

struct Claims {
  std::int64_t exp = 0, iat = 0;  // seconds since 1970
  std::string sun;
  GANTRY_FIELDS(FIELD(1, exp), FIELD(2, iat), FIELD(3, sun))
};

template <class T>
Result<T> read_part(std::string_view text, std::string_view what) {
  const auto bytes = from_base64(text);
  if (!bytes)
    return fail(ErrorCode::unauthenticated, fmt::format("the token's {} is not base64", what));
  auto part = codec::from_json<T>(*bytes);
  if (!part)
    return fail(ErrorCode::unauthenticated,
                fmt::format("the token's {} is none: {}", what, part.error().message));
  return part;
}

}  // namespace

std::string make_token(const SigningSeed& key, const Token& token) {
  const Claims claims{token.expires.us / 1'000'000, token.issued.us / 1'000'000, token.user};
  const std::string covered =
      base64(codec::to_json(Header{"HS256", "JWT"})) + "." + base64(codec::to_json(claims));
  return covered + "." + base64(mac_of(key, covered));
}

Result<Token> check_token(const SigningSeed& key, std::string_view text, Instant now) {
  const std::size_t first = text.find('.');
  const std::size_t last = text.rfind('.');
  if (text.size() > kMaxTokenBytes || first == last || first == std::string_view::npos)
    return fail(ErrorCode::unauthenticated, "this is no token: it has not three parts");
  ASSIGN(header, read_part<Header>(text.substr(0, first), "header"));
  if (header->alg != "HS256")
    return fail(ErrorCode::unauthenticated, "the token is not signed by HS256");
  const auto mac = from_base64(text.substr(last + 1));
  const std::string right = mac_of(key, text.substr(0, last));
  if (!mac || mac->size() != right.size() ||
      sodium_memcmp(mac->data(), right.data(), right.size()) != 0)
    return fail(ErrorCode::unauthenticated, "the token is not signed by this controller");
  ASSIGN(claims, read_part<Claims>(text.substr(first + 1, last - first - 1), "body"));
  if (claims->sun.empty() || claims->iat < 0 || claims->iat > claims->exp || claims->exp > kLatest)
    return fail(ErrorCode::unauthenticated, "the token lacks one of sun, iat and exp");
  const Token token{claims->sun, {claims->iat * 1'000'000}, {claims->exp * 1'000'000}};
  if (token.expires <= now) return fail(ErrorCode::unauthenticated, "the token is no longer valid");
  if (token.issued > now + kCredentialSkew)
    return fail(ErrorCode::unauthenticated, "the token is from the future: check the clocks");
  return token;
}

std::string claimed_user(std::string_view text) {
  const std::size_t first = text.find('.');
  const std::size_t last = text.rfind('.');
  if (text.size() > kMaxTokenBytes || first == last || first == std::string_view::npos) return {};
  const auto claims = read_part<Claims>(text.substr(first + 1, last - first - 1), "body");
  return claims ? claims->sun : std::string();
}

}  // namespace gantry::auth
