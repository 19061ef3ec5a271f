#include "common/auth/signature.h"

#include <fmt/core.h>
#include <sodium.h>

#include <cstring>

#include "common/assert.h"
#include "common/net/key_file.h"

namespace gantry::auth {
namespace {

using SecretBytes = std::array<unsigned char, crypto_sign_SECRETKEYBYTES>;

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// The length of the context comes first. Otherwise another split into context and blob could give
// the same bytes.
std::string signed_text(std::string_view context, std::string_view blob) {
  GANTRY_ASSERT(context.size() < 256, "a signature's context is a short constant");
  std::string text;
  text.reserve(1 + context.size() + blob.size());
  text += static_cast<char>(context.size());
  text += context;
  text += blob;
  return text;
}

SigningKey expand(const SigningSeed& seed, SecretBytes& secret) {
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  SigningKey key;
  key.seed = seed;
  crypto_sign_seed_keypair(key.verify_key.bytes.data(), secret.data(), seed.bytes.data());
  return key;
}

template <class K>
Result<K> key_from(std::string_view raw) {
  if (raw.size() != net::kKeyBytes)
    return fail(ErrorCode::malformed,
                fmt::format("a key has 32 bytes, this one has {}", raw.size()));
  K key;
  std::memcpy(key.bytes.data(), raw.data(), raw.size());
  return key;
}

}  // namespace

SigningKey generate_signing_key() {
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  SigningSeed seed;
  randombytes_buf(seed.bytes.data(), seed.bytes.size());
  return signing_key_from_seed(seed);
}

SigningKey signing_key_from_seed(const SigningSeed& seed) {
  SecretBytes secret;
  const SigningKey key = expand(seed, secret);
  sodium_memzero(secret.data(), secret.size());
  return key;
}

Bytes sign(const SigningKey& key, std::string_view context, std::string_view blob) {
  SecretBytes secret;
  expand(key.seed, secret);
  const std::string text = signed_text(context, blob);
  Bytes signature(kSignatureBytes, '\0');
  crypto_sign_detached(reinterpret_cast<unsigned char*>(signature.data()), nullptr, octets(text),
                       text.size(), secret.data());
  sodium_memzero(secret.data(), secret.size());
  return signature;
}

bool verify(const VerifyKey& key, std::string_view context, std::string_view blob,
            std::string_view signature) {
  if (signature.size() != kSignatureBytes) return false;
  const std::string text = signed_text(context, blob);
  return crypto_sign_verify_detached(octets(signature), octets(text), text.size(),
                                     key.bytes.data()) == 0;
}

Result<VerifyKey> parse_verify_key(std::string_view text) {
  const auto raw = net::from_hex(text);
  if (!raw || raw->size() != net::kKeyBytes)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("\"{}\" is no Ed25519 public key: 64 hexadecimal digits", text.substr(0, 80)));
  return key_from<VerifyKey>(*raw);
}

Result<VerifyKey> verify_key_from_bytes(std::string_view raw) {
  return key_from<VerifyKey>(raw);
}

Result<void> save_signing_key(const std::string& path, const SigningKey& key) {
  return net::write_private_file(
      path, fmt::format("# Gantry Ed25519 signing key; keep the seed secret\n"
                        "verify {}\nseed {}\n",
                        net::to_hex(key.verify_key.view()), net::to_hex(key.seed.view())));
}

Result<SigningKey> load_signing_key(const std::string& path) {
  ASSIGN(values, net::read_private_file(path));
  const auto damaged = [&] {
    return fail(ErrorCode::malformed, fmt::format("key file {} does not hold a signing key", path));
  };
  if (!values->contains("verify") || !values->contains("seed")) return damaged();
  const auto verify_key = parse_verify_key(values->at("verify"));
  const auto raw = net::from_hex(values->at("seed"));
  const auto seed = key_from<SigningSeed>(raw ? *raw : std::string());
  if (!verify_key || !seed) return damaged();
  const SigningKey key = signing_key_from_seed(*seed);
  if (key.verify_key != *verify_key) return damaged();
  return key;
}

}  // namespace gantry::auth
