// Tokens that another issuer has made for a person (OpenID Connect, RFC 7519): the site's single
// sign-on vouches for the user and the groups. Nothing is fetched: the issuer's keys are in a file,
// which is read again when it changes.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time/time.h"
#include "ctld/secrets/web_keys.h"

namespace gantry::secrets {

// Prefix of groups from such a token, so that no issuer can make a user a member of a group of the
// operating system.
inline constexpr std::string_view kOutsideGroup = "oidc:";
inline constexpr std::size_t kMaxOutsideTokenBytes =
    16 << 10;  // bytes of a token, which may have many groups

struct OutsideRules {
  std::string issuer;    // the claim `iss` must equal this
  std::string audience;  // must be among the claim `aud`
  std::string
      keys_file;  // file with a JSON Web Key Set; only root or this process's user may write it
  std::string user_claim;  // claim with the login name
  std::string
      groups_claim;    // claim with the groups (a list of texts, or one); "" = groups are ignored
  Duration longest{};  // a token is valid at most this long after its `iat`
};

struct OutsideToken {
  std::string user;
  std::vector<std::string> groups;  // with kOutsideGroup before each, sorted
  Instant expires{};
};

class OutsideIssuer {
 public:
  // The error names the file, and tells what is wrong with it.
  static Result<std::unique_ptr<OutsideIssuer>> open(OutsideRules rules);

  // True if a token's header names a method of such issuers; false for the controller's own tokens.
  static bool may_have_made(std::string_view token);
  // The error unauthenticated tells which part of the token is wrong.
  [[nodiscard]] Result<OutsideToken> check(std::string_view token, Instant now);
  // The user that a token names, without checking it, for logs only; "" = none.
  [[nodiscard]] std::string claimed(std::string_view token) const;
  // Why the newest content of the file is not used, reported once for each content; "" = nothing
  // new.
  std::string new_fault() { return std::exchange(fault_, {}); }

 private:
  explicit OutsideIssuer(OutsideRules rules) : rules_(std::move(rules)) {}
  Result<void> read();
  void read_again();

  OutsideRules rules_;
  std::optional<WebKeys> keys_;
  struct stat seen_ {};  // state of the file when it was last read
  std::string fault_;
};

}  // namespace gantry::secrets
