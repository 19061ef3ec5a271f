#include "common/net/keys.h"

#include <fmt/core.h>
#include <sodium.h>

#include "common/assert.h"
#include "common/net/key_file.h"

namespace gantry::net {
namespace {

constexpr std::string_view kZ85 =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
constexpr std::size_t kZ85Bytes = kKeyBytes / 4 * 5;
constexpr std::size_t kHexBytes = kKeyBytes * 2;

std::string z85(const std::array<std::uint8_t, kKeyBytes>& bytes) {
  std::string text;
  for (std::size_t i = 0; i < kKeyBytes; i += 4) {
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < 4; ++k) value = value << 8 | bytes[i + k];
    char group[5];
    for (int k = 4; k >= 0; --k, value /= 85) group[k] = kZ85[value % 85];
    text.append(group, 5);
  }
  return text;
}

bool from_z85(std::string_view text, std::array<std::uint8_t, kKeyBytes>& out) {
  for (std::size_t group = 0; group < kKeyBytes / 4; ++group) {
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < 5; ++k) {
      const std::size_t digit = kZ85.find(text[5 * group + k]);
      if (digit == std::string_view::npos) return false;
      value = value * 85 + digit;
    }
    if (value > 0xffffffff) return false;
    for (std::size_t k = 0; k < 4; ++k)
      out[4 * group + k] = static_cast<std::uint8_t>(value >> (24 - 8 * k));
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

template <class K>
Result<K> parse_key(std::string_view text, std::string_view shown) {
  K key;
  text = trimmed(text);
  if (text.size() == kHexBytes) {
    const auto raw = from_hex(text);
    if (raw) {
      std::memcpy(key.bytes.data(), raw->data(), kKeyBytes);
      return key;
    }
  }
  if (text.size() == kZ85Bytes && from_z85(text, key.bytes)) return key;
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is no key: 40 characters of Z85 or 64 hexadecimal digits", shown));
}

PublicKey public_of(const SecretKey& secret) {
  PublicKey key;
  const int failed = crypto_scalarmult_base(key.bytes.data(), secret.bytes.data());
  GANTRY_ASSERT(failed == 0, "X25519 of a secret key");
  return key;
}

}  // namespace

KeyPair generate_key_pair() {
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  KeyPair pair;
  crypto_box_keypair(pair.public_key.bytes.data(), pair.secret_key.bytes.data());
  return pair;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

Result<std::string> from_hex(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = digit(text[i + 1]);
    if (high < 0 || low < 0) break;
    bytes += static_cast<char>(high << 4 | low);
  }
  if (2 * bytes.size() != text.size())
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not hexadecimal", text));
  return bytes;
}

std::string to_z85(const PublicKey& key) {
  return z85(key.bytes);
}
std::string to_z85(const SecretKey& key) {
  return z85(key.bytes);
}

Result<PublicKey> parse_public_key(std::string_view text) {
  return parse_key<PublicKey>(text, fmt::format("\"{}\"", text.substr(0, 80)));
}

Result<SecretKey> parse_secret_key(std::string_view text) {
  return parse_key<SecretKey>(text, "the given text");  // a secret must not be quoted in the error
}

Result<PublicKey> public_key_from_bytes(std::string_view raw) {
  if (raw.size() != kKeyBytes)
    return fail(ErrorCode::malformed,
                fmt::format("a key has 32 bytes, this one has {}", raw.size()));
  PublicKey key;
  std::memcpy(key.bytes.data(), raw.data(), kKeyBytes);
  return key;
}

Result<void> save_key_pair(const std::string& path, const KeyPair& pair) {
  return write_private_file(path, fmt::format("# Gantry CURVE key pair; keep the secret secret\n"
                                              "public {}\nsecret {}\n",
                                              to_z85(pair.public_key), to_z85(pair.secret_key)));
}

Result<KeyPair> load_key_pair(const std::string& path) {
  ASSIGN(values, read_private_file(path));
  const auto whole = values->contains("public") && values->contains("secret");
  const auto secret = whole ? parse_secret_key(values->at("secret")) : Result<SecretKey>();
  const auto shown = whole ? parse_public_key(values->at("public")) : Result<PublicKey>();
  if (!whole || !secret || !shown || public_of(*secret) != *shown)
    return fail(ErrorCode::malformed, fmt::format("key file {} does not hold a key pair", path));
  return KeyPair{.public_key = *shown, .secret_key = *secret};
}

}  // namespace gantry::net
