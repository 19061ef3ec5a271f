// Ed25519 signatures over blobs: step permissions (signed by the controller, checked by nodes) and
// registered keys of users. A context string makes a signature for one purpose useless for another.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/net/keys.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::auth {

using VerifyKey = net::Key<struct VerifyTag>;  // public
using SigningSeed = net::Key<struct SeedTag>;  // secret; the key pair follows from it

struct SigningKey {
  VerifyKey verify_key;
  SigningSeed seed;
};

inline constexpr std::size_t kSignatureBytes = 64;

SigningKey generate_signing_key();
SigningKey signing_key_from_seed(const SigningSeed& seed);

Bytes sign(const SigningKey& key, std::string_view context, std::string_view blob);
bool verify(const VerifyKey& key, std::string_view context, std::string_view blob,
            std::string_view signature);

Result<VerifyKey> parse_verify_key(std::string_view text);      // 64 hex digits
Result<VerifyKey> verify_key_from_bytes(std::string_view raw);  // exactly 32

// Key files follow the rules of net/keys.h: mode 0600, written completely or not at all, refused if
// others may read them.
Result<void> save_signing_key(const std::string& path, const SigningKey& key);
Result<SigningKey> load_signing_key(const std::string& path);

}  // namespace gantry::auth
