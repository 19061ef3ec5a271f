// CURVE keys (X25519): those of the controller and of nodes, and the ephemeral keys of client
// sessions.
//
// As text a key is 40 characters of Z85 (as other ZeroMQ programs show it) or 64 hexadecimal
// digits. A key file contains one pair and has mode 0600; a file that others may read, or that is
// not complete, is refused.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry::net {

inline constexpr std::size_t kKeyBytes = 32;

template <class Tag>
struct Key {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  friend auto operator<=>(const Key&, const Key&) = default;
  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes.data()), kKeyBytes};
  }
};
using PublicKey = Key<struct PublicTag>;
using SecretKey = Key<struct SecretTag>;

struct KeyPair {
  PublicKey public_key;
  SecretKey secret_key;
};

KeyPair generate_key_pair();

std::string to_hex(std::string_view bytes);  // lower case
Result<std::string> from_hex(std::string_view text);
std::string to_z85(const PublicKey& key);
std::string to_z85(const SecretKey& key);
// Reads Z85 or hex; white space around it is allowed. The error quotes the text.
Result<PublicKey> parse_public_key(std::string_view text);
Result<SecretKey> parse_secret_key(std::string_view text);
Result<PublicKey> public_key_from_bytes(std::string_view raw);  // exactly 32

// Writes PATH with mode 0600 (completely or not at all). If PATH exists, the error is
// already_exists.
Result<void> save_key_pair(const std::string& path, const KeyPair& pair);
// Fails if group or others may read the file, or if the two keys do not belong together.
Result<KeyPair> load_key_pair(const std::string& path);

}  // namespace gantry::net

template <class Tag>
struct std::hash<gantry::net::Key<Tag>> {
  std::size_t operator()(const gantry::net::Key<Tag>& key) const noexcept {
    std::size_t first = 0;  // enough for a hash, because keys are random
    std::memcpy(&first, key.bytes.data(), sizeof first);
    return first;
  }
};
