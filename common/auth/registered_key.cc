#include "common/auth/registered_key.h"
#include "common/fields.h"

#include <fmt/core.h>

#include "common/codec/define.h"

namespace gantry::auth {
namespace {

constexpr std::string_view kContext = "gantry session";

struct KeyCredential {
  Bytes verify_key;
  Instant at{};
  Bytes signature;
  GANTRY_FIELDS(FIELD(1, verify_key), FIELD(2, at), FIELD(3, signature))
};

std::string covered(const net::PublicKey& session, Instant at) {
  return std::string(session.view()) + std::to_string(at.us);
}

}  // namespace

Bytes make_key_credential(const SigningKey& key, const net::PublicKey& session, Instant now) {
  return codec::encode(KeyCredential{.verify_key = Bytes(key.verify_key.view()),
                                     .at = now,
                                     .signature = sign(key, kContext, covered(session, now))});
}

Result<VerifyKey> check_key_credential(std::string_view credential, const net::PublicKey& session,
                                       Instant now, Duration skew) {
  const auto c = codec::decode<KeyCredential>(credential);
  if (!c) return fail(ErrorCode::unauthenticated, "the credential is none: " + c.error().message);
  const auto key = verify_key_from_bytes(c->verify_key);
  if (!key) return fail(ErrorCode::unauthenticated, "the credential's key is none");
  if (!verify(*key, kContext, covered(session, c->at), c->signature))
    return fail(ErrorCode::unauthenticated,
                "the credential is not signed for this connection by its key");
  // The time is signed by the client, so it comes from the client's clock, and can be any number.
  if (c->at < now - skew || c->at > now + skew)
    return fail(ErrorCode::unauthenticated,
                fmt::format("the credential's time differs by more than {} s from the "
                            "controller's: check the clocks",
                            skew.seconds()));
  return *key;
}

std::optional<VerifyKey> claimed_key(std::string_view credential) {
  const auto c = codec::decode<KeyCredential>(credential);
  if (!c) return std::nullopt;
  const auto key = verify_key_from_bytes(c->verify_key);
  return key ? std::optional(*key) : std::nullopt;
}

}  // namespace gantry::auth
