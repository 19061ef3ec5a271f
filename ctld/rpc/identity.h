// Turns a credential into an identity: who a client is, and in which role. Identities are made only
// here; no field of a request ever says who asks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/auth/groups.h"
#include "common/auth/signature.h"
#include "common/auth/users.h"
#include "common/net/keys.h"
#include "common/proto/session.h"
#include "config/config.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/secrets/outside_issuer.h"

namespace gantry::rpc {

class IdentityCheck {
 public:
  // `user_of_key` returns the login name for which a key is registered.
  using UserOfKey = std::function<std::optional<std::string>(const auth::VerifyKey&)>;
  IdentityCheck(std::vector<std::string> admins, bool allow_munge, UserOfKey user_of_key,
                const auth::SigningSeed& token_key);
  // From now on tokens of oidc_issuer, if there is one, are credentials too. They never stand for
  // uid 0. The error names the file of its keys and tells what is wrong with it.
  Result<void> accept_issuer(const ControllerConfig& config);
  // Why the newest content of that file is not used, reported once for each content; "" = nothing
  // new.
  std::string new_fault() { return outside_ ? outside_->new_fault() : std::string(); }

  struct Proof {
    core::Identity identity;
    std::string registered_key;  // hex; "" = not proved by a registered key
  };
  // The error unauthenticated tells why the credential is not valid for this session.
  Result<Proof> check(const proto::Authenticate& request, const net::PublicKey& session,
                      Instant now);
  // The identity of a user for whom a login node asks. The error unauthenticated means that the
  // user database does not have the user.
  Result<core::Identity> at_login_node(Uid uid, Instant now);
  // The names of the present groups of a job's owner, from this host's user database; none if this
  // uid has another name there, or none.
  std::vector<std::string> groups_of(const Owner& owner, Instant now);
  // For the log: the user whom a refused credential names; "" = none.
  [[nodiscard]] std::string claimed(const proto::Authenticate& request) const;
  // The role of a login name, from the configuration's list of admins.
  [[nodiscard]] proto::Role role_of(const std::string& user) const;

 private:
  Result<Owner> by_token(std::string_view token, Instant now, core::Identity& who);
  std::vector<std::string> admins_;
  bool allow_munge_;
  UserOfKey user_of_key_;
  auth::SigningSeed token_key_;
  std::unique_ptr<secrets::OutsideIssuer> outside_;  // null: no other issuer is accepted
  auth::UserCache users_;
  auth::GroupNames groups_;
};

// The identity for messages that strangers may send too (Ping). It has nobody's uid, so it is not
// root (uid 0).
core::Identity nobody();

}  // namespace gantry::rpc
