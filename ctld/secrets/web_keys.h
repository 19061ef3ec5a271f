// The public keys of an issuer of tokens: a JSON Web Key Set (RFC 7517), and signatures by its keys
// (RFC 7515) with ES256 and RS256.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

struct evp_pkey_st;

namespace gantry::secrets {

class WebKeys {
 public:
  // Keys of other kinds, keys that do not sign ("use" other than "sig") and RSA keys below 2048
  // bits are left out. The error malformed means that it is no key set, that a key is invalid, or
  // that none is left.
  static Result<WebKeys> parse(std::string_view jwks);

  // Whether `signature` over `text` was made with the key `key_id`. Without an id every key of the
  // algorithm's kind is tried. `algorithm` is "ES256" or "RS256"; a key is used only for its own
  // algorithm. The error unauthenticated tells what is wrong.
  [[nodiscard]] Result<void> verify(std::string_view algorithm, std::string_view key_id,
                                    std::string_view text, std::string_view signature) const;
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  struct OneKey {
    std::string id;         // "" = the key has none
    std::string algorithm;  // follows from the key's kind
    std::unique_ptr<evp_pkey_st, Free> key;
  };

  std::vector<OneKey> keys_;
};

}  // namespace gantry::secrets
