#include "ctld/secrets/web_keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <fmt/core.h>

#include "common/codec/json_io.h"
#include "ctld/secrets/jwt.h"

namespace gantry::secrets {
namespace {

constexpr std::size_t kNumberBytes =
    32;  // size of a coordinate of P-256, and of each half of a signature
constexpr int kLeastRsaBits = 2048;           // RFC 7518, section 3.3
constexpr std::size_t kMostRsaBytes = 1'024;  // a longer number would only cost time
constexpr std::size_t kMostKeys = 100;

template <auto Release>
struct Released {
  template <class T>
  void operator()(T* it) const {
    Release(it);
  }
};
template <class T, auto Release>
using Owned = std::unique_ptr<T, Released<Release>>;

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string_view text_of(const codec::JsonNode& key, std::string_view name) {
  const auto node = key.find(name);
  return node && node->string() ? *node->string() : std::string_view();
}

// The public key with these numbers; null if libcrypto refuses them, for example a point that is
// not on the curve.
EVP_PKEY* made_of(const char* kind, OSSL_PARAM_BLD* parts) {
  const Owned<OSSL_PARAM, OSSL_PARAM_free> params(OSSL_PARAM_BLD_to_param(parts));
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(
      EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1)
    return nullptr;
  return key;
}

EVP_PKEY* elliptic_key(const std::string& x, const std::string& y) {
  if (x.size() != kNumberBytes || y.size() != kNumberBytes) return nullptr;
  const std::string point = '\x04' + x + y;  // 4: both coordinates follow
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> parts(OSSL_PARAM_BLD_new());
  if (!parts ||
      OSSL_PARAM_BLD_push_utf8_string(parts.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(parts.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1)
    return nullptr;
  return made_of("EC", parts.get());
}

EVP_PKEY* rsa_key(const std::string& n, const std::string& e) {
  if (n.empty() || n.size() > kMostRsaBytes || e.empty() || e.size() > sizeof(std::uint64_t))
    return nullptr;
  const Owned<BIGNUM, BN_free> modulus(BN_bin2bn(octets(n), static_cast<int>(n.size()), nullptr));
  const Owned<BIGNUM, BN_free> exponent(BN_bin2bn(octets(e), static_cast<int>(e.size()), nullptr));
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> parts(OSSL_PARAM_BLD_new());
  if (!modulus || !exponent || !parts ||
      OSSL_PARAM_BLD_push_BN(parts.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(parts.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1)
    return nullptr;
  return made_of("RSA", parts.get());
}

// Converts a signature from two concatenated halves, as in JWS, to ASN.1; "" if it is invalid.
std::string asn1_signature(std::string_view halves) {
  if (halves.size() != 2 * kNumberBytes) return {};
  const Owned<ECDSA_SIG, ECDSA_SIG_free> parts(ECDSA_SIG_new());
  BIGNUM* r = BN_bin2bn(octets(halves), kNumberBytes, nullptr);
  BIGNUM* s = BN_bin2bn(octets(halves.substr(kNumberBytes)), kNumberBytes, nullptr);
  if (!parts || ECDSA_SIG_set0(parts.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return {};
  }
  std::string out(static_cast<std::size_t>(i2d_ECDSA_SIG(parts.get(), nullptr)), '\0');
  auto* at = reinterpret_cast<unsigned char*>(out.data());
  i2d_ECDSA_SIG(parts.get(), &at);
  return out;
}

bool is_by(EVP_PKEY* key, std::string_view text, std::string_view signature) {
  const Owned<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
  return context && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), octets(signature), signature.size(), octets(text),
                          text.size()) == 1;
}

}  // namespace

void WebKeys::Free::operator()(evp_pkey_st* key) const {
  EVP_PKEY_free(key);
}

Result<WebKeys> WebKeys::parse(std::string_view jwks) {
  ASSIGN(document, codec::JsonDocument::parse(jwks));
  const auto list = document->root().is_object() ? document->root().find("keys") : std::nullopt;
  if (!list || !list->is_array())
    return fail(ErrorCode::malformed, "it is no set of keys: it has no list `keys`");
  WebKeys out;
  for (std::size_t i = 0; i < list->size() && i < kMostKeys; ++i) {
    const codec::JsonNode key = list->item(i);
    if (!key.is_object()) continue;
    const std::string_view kind = text_of(key, "kty"), use = text_of(key, "use");
    const bool elliptic = kind == "EC" && text_of(key, "crv") == "P-256";
    const std::string_view algorithm = elliptic ? "ES256" : "RS256";
    const std::string_view said = text_of(key, "alg");
    if ((!elliptic && kind != "RSA") || (!use.empty() && use != "sig") ||
        (!said.empty() && said != algorithm))
      continue;
    const auto number = [&](std::string_view name) {
      return from_base64url(text_of(key, name)).value_or("");
    };
    OneKey one{std::string(text_of(key, "kid")), std::string(algorithm), nullptr};
    one.key.reset(elliptic ? elliptic_key(number("x"), number("y"))
                           : rsa_key(number("n"), number("e")));
    if (!one.key)
      return fail(ErrorCode::malformed, fmt::format("key {} (\"{}\") is no key", i + 1, one.id));
    if (!elliptic && EVP_PKEY_get_bits(one.key.get()) < kLeastRsaBits) continue;
    out.keys_.push_back(std::move(one));
  }
  if (out.keys_.empty())
    return fail(ErrorCode::malformed, "it has no key that signs with ES256 or RS256");
  return out;
}

Result<void> WebKeys::verify(std::string_view algorithm, std::string_view key_id,
                             std::string_view text, std::string_view signature) const {
  const bool elliptic = algorithm == "ES256";
  if (!elliptic && algorithm != "RS256")
    return fail(ErrorCode::unauthenticated, "the token is signed by neither ES256 nor RS256");
  const std::string form = elliptic ? asn1_signature(signature) : std::string(signature);
  bool known = false;
  for (const OneKey& one : keys_) {
    if (one.algorithm != algorithm || (!key_id.empty() && one.id != key_id)) continue;
    known = true;
    if (!form.empty() && is_by(one.key.get(), text, form)) return {};
  }
  return fail(
      ErrorCode::unauthenticated,
      known ? "the token's signature is wrong"
            : fmt::format("the token's issuer has no key \"{:.64}\" for {}", key_id, algorithm));
}

}  // namespace gantry::secrets
