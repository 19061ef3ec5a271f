// Proves an identity with a registered key: an Ed25519 public key that an administrator has bound
// to a user (RegisterKey). It is used on machines without munge, and for automation.
//
// The credential is msgpack {1: public key, 2: time, 3: signature over session key and time}. It
// covers the CURVE key of the session, and is valid only for a short time before and after it was
// made.
#pragma once

#include "common/auth/signature.h"
#include "common/net/keys.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::auth {

// How far clocks may differ, in both directions.
inline constexpr Duration kCredentialSkew = minutes(5);

Bytes make_key_credential(const SigningKey& key, const net::PublicKey& session, Instant now);

// Checks a credential and returns the key that made it. The caller has to know whether the key is
// registered, and for whom. The error unauthenticated means that the credential is for another
// session, too old, from the future, or not signed by that key.
Result<VerifyKey> check_key_credential(std::string_view credential, const net::PublicKey& session,
                                       Instant now, Duration skew = kCredentialSkew);

// The key that a credential names, without checking the credential; nullopt if it is no credential.
// Use it for logs only.
std::optional<VerifyKey> claimed_key(std::string_view credential);

}  // namespace gantry::auth
