// From a credential to an identity: who a client is, and in which role. The only place where one is
// made; request fields never say who asks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/auth/groups.h"
#include "common/auth/signature.h"
#include "common/auth/users.h"
#include "common/net/keys.h"
#include "common/proto/session.h"
#include "ctld/core/core.h"

namespace gantry::rpc {

class IdentityCheck {
 public:
  // `user_of_key`: login name that a registered key speaks for.
  using UserOfKey = std::function<std::optional<std::string>(const auth::VerifyKey&)>;
  IdentityCheck(std::vector<std::string> admins, bool allow_munge, UserOfKey user_of_key,
                const auth::SigningSeed& token_key);

  struct Proof {
    core::Identity identity;
    std::string registered_key;  // hex; "" = it was no key
  };
  // unauthenticated with a sentence when the credential does not hold for this session.
  Result<Proof> check(const proto::Authenticate& request, const net::PublicKey& session,
                      Instant now);
  // For the log: whom a credential that was refused speaks of, as it says itself. "" = it does not.
  [[nodiscard]] std::string claimed(const proto::Authenticate& request) const;
  // Role by login name, from the configuration's list of admins.
  [[nodiscard]] proto::Role role_of(const std::string& user) const;

 private:
  std::vector<std::string> admins_;
  bool allow_munge_;
  UserOfKey user_of_key_;
  auth::SigningSeed token_key_;
  auth::UserCache users_;
  auth::GroupNames groups_;
};

// Of a message that strangers may send too (Ping): nobody's uid, and so not root's 0.
core::Identity nobody();

}  // namespace gantry::rpc
