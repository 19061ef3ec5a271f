#include "ctld/secrets/secret_box.h"

#include <sodium.h>
#include <unistd.h>

#include <array>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/net/key_file.h"
#include "common/net/keys.h"

namespace gantry::secrets {
namespace {

constexpr char kForm = 1;  // the first byte of sealed data
constexpr std::size_t kKeyBytes = crypto_aead_xchacha20poly1305_ietf_KEYBYTES;
constexpr std::size_t kNonceBytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t kTagBytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr std::size_t kIdBytes = 16;  // of the key's fingerprint
constexpr std::size_t kHeadBytes = 1 + kIdBytes + kNonceBytes;

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* octets(Bytes& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

// Each part is preceded by its length, so that different names never give the same text.
Bytes bound_to(const SecretName& name) {
  return fmt::format("gantry secret {}:{} {}:{} {}", name.tenant.size(), name.tenant,
                     name.name.size(), name.name, name.version);
}

// Identifies a key without revealing it.
Bytes fingerprint(const unsigned char* key) {
  Bytes out(kIdBytes, '\0');
  constexpr std::string_view kText = "gantry secrets.key";
  crypto_generichash(octets(out), out.size(), octets(kText), kText.size(), key, kKeyBytes);
  return out;
}

}  // namespace

void wipe(Bytes& content) {
  sodium_memzero(content.data(), content.size());
  content.clear();
}

void SecretBox::Free::operator()(unsigned char* key) const {
  sodium_free(key);
}

Result<SecretBox> SecretBox::load(const std::string& path) {
  GANTRY_ASSERT(sodium_init() >= 0, "libsodium works");
  SecretBox box;
  box.path_ = path;
  box.key_.reset(static_cast<unsigned char*>(sodium_malloc(kKeyBytes)));
  if (!box.key_) return fail(ErrorCode::out_of_space, "no memory for the key of secrets");
  if (::access(path.c_str(), F_OK) != 0) {
    box.is_new_ = true;
    randombytes_buf(box.key_.get(), kKeyBytes);
    Bytes text = fmt::format(
        "# Gantry: seals the secrets of tenants. Without it they cannot be opened.\nkey {}\n",
        net::to_hex({reinterpret_cast<const char*>(box.key_.get()), kKeyBytes}));
    const auto written = net::write_private_file(path, text);
    wipe(text);
    if (!written) return tl::unexpected(written.error());
    return box;
  }
  ASSIGN(values, net::read_private_file(path));
  Bytes& hex = (*values)["key"];
  auto raw = net::from_hex(hex);
  wipe(hex);
  if (!raw || raw->size() != kKeyBytes)
    return fail(ErrorCode::malformed, fmt::format("{} does not hold a key for secrets", path));
  std::copy(raw->begin(), raw->end(), box.key_.get());
  wipe(*raw);
  return box;
}

std::string SecretBox::password(std::string_view word) const {
  constexpr std::string_view kPurpose =
      "gantry password\n";  // prefix of no other hash with this key
  std::string text(kPurpose);
  text += word;
  std::array<unsigned char, 16> hash{};
  crypto_generichash(hash.data(), hash.size(), octets(text), text.size(), key_.get(), kKeyBytes);
  std::array<char, 33> hex{};
  sodium_bin2hex(hex.data(), hex.size(), hash.data(), hash.size());
  return hex.data();
}

Bytes SecretBox::seal(const SecretName& name, std::string_view content) const {
  const Bytes bound = bound_to(name);
  Bytes out(kHeadBytes + content.size() + kTagBytes, '\0');
  out[0] = kForm;
  const Bytes id = fingerprint(key_.get());
  std::copy(id.begin(), id.end(), out.begin() + 1);
  unsigned char* nonce = octets(out) + 1 + kIdBytes;
  randombytes_buf(nonce, kNonceBytes);
  crypto_aead_xchacha20poly1305_ietf_encrypt(octets(out) + kHeadBytes, nullptr, octets(content),
                                             content.size(), octets(bound), bound.size(), nullptr,
                                             nonce, key_.get());
  return out;
}

Result<Bytes> SecretBox::open(const SecretName& name, std::string_view sealed) const {
  const auto damaged = [&] {
    return fail(ErrorCode::malformed,
                fmt::format("secret {}/{}@{} cannot be opened: it is damaged, or was sealed for "
                            "another name",
                            name.tenant, name.name, name.version));
  };
  if (sealed.size() < kHeadBytes + kTagBytes || sealed[0] != kForm) return damaged();
  if (sealed.substr(1, kIdBytes) != fingerprint(key_.get()))
    return fail(ErrorCode::wrong_state,
                fmt::format("secret {}/{}@{} was sealed with another key than the one in {}: put "
                            "that file back, or set the secret again",
                            name.tenant, name.name, name.version, path_));
  const Bytes bound = bound_to(name);
  Bytes out(sealed.size() - kHeadBytes - kTagBytes, '\0');
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(
          octets(out), nullptr, nullptr, octets(sealed) + kHeadBytes, sealed.size() - kHeadBytes,
          octets(bound), bound.size(), octets(sealed) + 1 + kIdBytes, key_.get()) != 0)
    return damaged();
  return out;
}

}  // namespace gantry::secrets
