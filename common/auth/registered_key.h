// Identity by registered key: an Ed25519 public key that an administrator has bound to a user
// (RegisterKey). For machines without munge, and for automation.
//
// The credential is msgpack {1: public key, 2: time, 3: signature over session key and time}. It
// covers the CURVE key of the session, and holds only for a short time around when it was made.
#pragma once

#include "common/auth/signature.h"
#include "common/net/keys.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::auth {

inline constexpr Duration kCredentialSkew = minutes(5);  // of clocks, either way

Bytes make_key_credential(const SigningKey& key, const net::PublicKey& session, Instant now);

// The key that made the credential; whether it is registered, and for whom, the caller knows.
// unauthenticated: for another session, too old, from the future, or not signed by that key.
Result<VerifyKey> check_key_credential(std::string_view credential, const net::PublicKey& session,
                                       Instant now, Duration skew = kCredentialSkew);

// The key that a credential names, whether it holds or not; nothing if it is none. For logs only.
std::optional<VerifyKey> claimed_key(std::string_view credential);

}  // namespace gantry::auth
