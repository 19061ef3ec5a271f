#include "ctld/secrets/identity_keys.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/assert.h"
#include "common/net/key_file.h"
#include "common/net/keys.h"

namespace gantry::secrets {
namespace {

constexpr std::size_t kNumberBytes =
    32;  // size of a coordinate of P-256, and of each half of a signature
constexpr std::string_view kWord = "key-";

tl::unexpected<Error> failed(std::string_view what) {
  return fail(ErrorCode::internal, fmt::format("libcrypto: {} failed", what));
}

std::string view_of(const std::vector<unsigned char>& octets) {
  return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

// The two halves of the signature, concatenated as in JWS, made from ASN.1.
Result<Bytes> plain_signature(const std::vector<unsigned char>& der) {
  const unsigned char* at = der.data();
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> parts(
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())), &ECDSA_SIG_free);
  if (!parts) return failed("reading a signature");
  std::vector<unsigned char> out(2 * kNumberBytes);
  if (BN_bn2binpad(ECDSA_SIG_get0_r(parts.get()), out.data(), kNumberBytes) < 0 ||
      BN_bn2binpad(ECDSA_SIG_get0_s(parts.get()), out.data() + kNumberBytes, kNumberBytes) < 0)
    return failed("reading a signature");
  return view_of(out);
}

Result<Bytes> sign(EVP_PKEY* key, std::string_view text) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  std::size_t size = 0;
  const auto* octets = reinterpret_cast<const unsigned char*>(text.data());
  if (!context || EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, octets, text.size()) != 1)
    return failed("signing");
  std::vector<unsigned char> der(size);
  if (EVP_DigestSign(context.get(), der.data(), &size, octets, text.size()) != 1)
    return failed("signing");
  der.resize(size);
  return plain_signature(der);
}

// The coordinates of the public key, as base64url.
Result<std::pair<std::string, std::string>> coordinates(EVP_PKEY* key) {
  std::array<unsigned char, 1 + 2 * kNumberBytes> point{};
  std::size_t size = 0;
  if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(),
                                      &size) != 1 ||
      size != point.size() || point[0] != POINT_CONVERSION_UNCOMPRESSED)
    return failed("reading a public key");
  const std::string_view all(reinterpret_cast<const char*>(point.data()), point.size());
  return std::pair{base64url(all.substr(1, kNumberBytes)), base64url(all.substr(1 + kNumberBytes))};
}

// RFC 7638: the hash of the public key is its id.
std::string thumbprint(const std::string& x, const std::string& y) {
  const std::string text = fmt::format(R"({{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}})", x, y);
  std::string hash(crypto_hash_sha256_BYTES, '\0');
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(hash.data()),
                     reinterpret_cast<const unsigned char*>(text.data()), text.size());
  return base64url(hash);
}

}  // namespace

IdentityKeys::~IdentityKeys() = default;

void IdentityKeys::Free::operator()(evp_pkey_st* key) const {
  EVP_PKEY_free(key);
}

Result<std::unique_ptr<IdentityKeys>> IdentityKeys::load(std::string path, Rules rules,
                                                         Instant now) {
  std::unique_ptr<IdentityKeys> out(new IdentityKeys(std::move(path), std::move(rules)));
  if (::access(out->path_.c_str(), F_OK) == 0) TRY(out->read());
  TRY(out->look(now));
  return out;
}

Result<void> IdentityKeys::add(Instant made, evp_pkey_st* key) {
  OneKey one;
  one.key.reset(key);
  one.made = made;
  if (key == nullptr) return failed("making or reading a key");
  ASSIGN(at, coordinates(key));
  one.id = thumbprint(at->first, at->second);
  one.jwk = fmt::format(
      R"({{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"{}","x":"{}","y":"{}"}})",
      one.id, at->first, at->second);
  keys_.push_back(std::move(one));
  return {};
}

Result<void> IdentityKeys::read() {
  ASSIGN(lines, net::read_private_file(path_));
  for (auto& [name, text] : *lines) {
    std::int64_t made = 0;
    const auto end = name.data() + name.size();
    const bool sound = name.starts_with(kWord) &&
                       std::from_chars(name.data() + kWord.size(), end, made).ptr == end;
    auto der = net::from_hex(sound ? text : "-");
    if (!der) return fail(ErrorCode::malformed, path_ + " does not hold keys that sign tokens");
    const auto* at = reinterpret_cast<const unsigned char*>(der->data());
    const auto done =
        add(Instant{made}, d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(der->size())));
    sodium_memzero(der->data(), der->size());
    sodium_memzero(text.data(), text.size());
    if (!done) return fail(done.error().code, path_ + ": " + done.error().message);
  }
  std::sort(keys_.begin(), keys_.end(),
            [](const OneKey& a, const OneKey& b) { return a.made < b.made; });
  return {};
}

Result<void> IdentityKeys::write() const {
  std::string text = "# Gantry: the keys that sign identity tokens of jobs; keep them secret\n";
  for (const OneKey& one : keys_) {
    unsigned char* der = nullptr;
    const int size = i2d_PrivateKey(one.key.get(), &der);
    if (size <= 0) return failed("writing a key");
    text += fmt::format(
        "{}{} {}\n", kWord, one.made.us,
        net::to_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)}));
    OPENSSL_clear_free(der, static_cast<std::size_t>(size));
  }
  const std::string fresh = path_ + ".new";
  ::unlink(fresh.c_str());  // left by a daemon that was killed
  const auto done = net::write_private_file(fresh, text);
  sodium_memzero(text.data(), text.size());
  if (!done) return done;
  if (std::rename(fresh.c_str(), path_.c_str()) != 0)
    return fail(ErrorCode::io_error, path_ + ": cannot be replaced");
  return {};
}

const IdentityKeys::OneKey& IdentityKeys::signing(Instant now) const {
  GANTRY_ASSERT(!keys_.empty(), "there is a key that signs");
  for (auto it = keys_.rbegin(); it != keys_.rend(); ++it)
    if (it->made + kKeyNotice <= now) return *it;
  return keys_.front();  // the very first key signs at once
}

Result<void> IdentityKeys::look(Instant now) {
  if (keys_.empty() || keys_.back().made + rules_.period <= now) {
    if (auto done = add(now, EVP_EC_gen("P-256")); !done) return done;
    unwritten_ = true;
  }
  // A key may be removed when its successor has signed for longer than tokens are valid.
  while (keys_.size() > 1 && keys_[1].made + kKeyNotice + rules_.lifetime < now) {
    keys_.erase(keys_.begin());
    unwritten_ = true;
  }
  publish();
  if (!unwritten_) return {};
  const auto done = write();
  unwritten_ = !done;
  return done;
}

Result<Bytes> IdentityKeys::token(Claims claims, Instant now, Duration valid) const {
  const OneKey& key = signing(now);
  std::string id(16, '\0');
  randombytes_buf(id.data(), id.size());
  id = base64url(id);
  claims.issuer = rules_.issuer;
  claims.from = now;
  claims.until = now + std::min(valid, rules_.lifetime);
  claims.id = id;
  std::string text = unsigned_token(claims, key.id);
  ASSIGN(signature, sign(key.key.get(), text));
  return text + "." + base64url(*signature);
}

void IdentityKeys::publish() {
  std::vector<std::string_view> all;
  for (const OneKey& one : keys_) all.push_back(one.jwk);
  std::string text = fmt::format(R"({{"keys":[{}]}})", fmt::join(all, ","));
  const std::lock_guard lock(mutex_);
  published_ = std::move(text);
}

std::string IdentityKeys::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

std::string IdentityKeys::configuration() const {
  return fmt::format(
      R"({{"issuer":{},"jwks_uri":{},"response_types_supported":["id_token"],)"
      R"("subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"],)"
      R"("claims_supported":["iss","sub","aud","iat","nbf","exp","jti","tenant","project","user",)"
      R"("job","attempt","node"]}})",
      json_text(rules_.issuer), json_text(rules_.issuer + "/.well-known/jwks.json"));
}

}  // namespace gantry::secrets
