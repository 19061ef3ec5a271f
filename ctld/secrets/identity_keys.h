// The keys that sign identity tokens (ES256), and what verifiers are told of them.
//
// A key signs for a period. The next one is made and published kKeyNotice earlier, so that
// verifiers that cache the list of keys know it in time; and a key stays published as long as a
// token that it signed is valid. Which key signs follows from their times alone.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"
#include "ctld/secrets/jwt.h"

struct evp_pkey_st;  // EVP_PKEY of libcrypto

namespace gantry::secrets {

inline constexpr Duration kKeyNotice = hours(24);

class IdentityKeys {
 public:
  struct Rules {
    std::string issuer;   // URL, without a slash at its end
    Duration lifetime{};  // lifetime of a token
    Duration period{};    // time for which a key signs
  };
  // Reads the file, or makes it with a first key.
  static Result<std::unique_ptr<IdentityKeys>> load(std::string path, Rules rules, Instant now);
  ~IdentityKeys();

  // Makes the next key and removes old ones when their times have come.
  Result<void> look(Instant now);

  // Returns the signed token, which is valid from now on for this long, but at most lifetime(); the
  // caller gives the other claims.
  [[nodiscard]] Result<Bytes> token(Claims claims, Instant now, Duration valid) const;
  [[nodiscard]] Duration lifetime() const { return rules_.lifetime; }
  [[nodiscard]] const std::string& issuer() const { return rules_.issuer; }

  // Any thread may call these: the answers to GET /.well-known/openid-configuration and
  // /.well-known/jwks.json.
  [[nodiscard]] std::string configuration() const;
  [[nodiscard]] std::string published() const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  struct OneKey {
    Instant made{};
    std::unique_ptr<evp_pkey_st, Free> key;
    std::string id, jwk;
  };
  IdentityKeys(std::string path, Rules rules) : path_(std::move(path)), rules_(std::move(rules)) {}
  Result<void> add(Instant made, evp_pkey_st* key);
  Result<void> read();
  [[nodiscard]] Result<void> write() const;
  [[nodiscard]] const OneKey& signing(Instant now) const;
  void publish();

  std::string path_;
  Rules rules_;
  std::vector<OneKey> keys_;  // the oldest first; never empty once loaded
  bool unwritten_ = false;    // true if the file does not have the newest keys
  mutable std::mutex mutex_;
  std::string published_;  // guarded by mutex_
};

}  // namespace gantry::secrets
