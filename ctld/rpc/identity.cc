// Finds out who a client is: munge gives a uid, a registered key or a token gives a login name, and
// all are looked up in the same user database.
#include "ctld/rpc/identity.h"

#include <algorithm>

#include "common/auth/munge.h"
#include "common/auth/registered_key.h"
#include "common/auth/token.h"

namespace gantry::rpc {

IdentityCheck::IdentityCheck(std::vector<std::string> admins, bool allow_munge,
                             UserOfKey user_of_key, const auth::SigningSeed& token_key)
    : admins_(std::move(admins)),
      allow_munge_(allow_munge),
      user_of_key_(std::move(user_of_key)),
      token_key_(token_key) {}

core::Identity nobody() {
  core::Identity who;
  who.owner.uid = Uid{UINT32_MAX};  // (uid_t)-1, which no user has
  who.owner.gid = Gid{UINT32_MAX};
  return who;
}

proto::Role IdentityCheck::role_of(const std::string& user) const {
  const bool admin = std::find(admins_.begin(), admins_.end(), user) != admins_.end();
  return admin ? proto::Role::admin : proto::Role::user;
}

Result<IdentityCheck::Proof> IdentityCheck::check(const proto::Authenticate& request,
                                                  const net::PublicKey& session, Instant now) {
  Proof proof;
  Result<Owner> owner = fail(ErrorCode::unauthenticated, "");
  if (request.method == proto::AuthMethod::munge) {
    if (!allow_munge_) {
      return fail(ErrorCode::unauthenticated,
                  "this controller does not accept munge credentials; use a registered key");
    }
    const auto who = auth::munge_decode(request.credential, session);
    if (!who) return tl::unexpected(who.error());
    owner = users_.find(who->uid, now);
  } else if (request.method == proto::AuthMethod::token) {
    const auto token = auth::check_token(token_key_, request.credential, now);
    if (!token) return tl::unexpected(token.error());
    owner = auth::find_user(token->user);
    proof.identity.token_ends = token->expires;
  } else {
    const auto key = auth::check_key_credential(request.credential, session, now);
    if (!key) return tl::unexpected(key.error());
    const auto user = user_of_key_(*key);
    if (!user) {
      return fail(ErrorCode::unauthenticated,
                  "this key is not registered; an administrator does that with 'gctl key add'");
    }
    owner = auth::find_user(*user);
    proof.registered_key = net::to_hex(key->view());
  }
  if (!owner) return fail(ErrorCode::unauthenticated, owner.error().message);
  proof.identity.role = role_of(owner->user);
  proof.identity.groups = groups_.of(*owner, now);
  proof.identity.owner = std::move(*owner);
  return proof;
}

Result<core::Identity> IdentityCheck::at_login_node(Uid uid, Instant now) {
  auto owner = users_.find(uid, now);
  if (!owner) return fail(ErrorCode::unauthenticated, owner.error().message);
  core::Identity who;
  who.role = role_of(owner->user);
  who.groups = groups_.of(*owner, now);
  who.owner = std::move(*owner);
  who.by_login_node = true;
  return who;
}

std::vector<std::string> IdentityCheck::groups_of(const Owner& owner, Instant now) {
  const auto found = users_.find(owner.uid, now);
  if (!found || found->user != owner.user) return {};
  return groups_.of(*found, now);
}

std::string IdentityCheck::claimed(const proto::Authenticate& request) const {
  switch (request.method) {
    case proto::AuthMethod::token: return auth::claimed_user(request.credential);
    case proto::AuthMethod::key: {
      const auto key = auth::claimed_key(request.credential);
      if (!key) return {};
      const auto user = user_of_key_(*key);
      return user ? *user : "key " + net::to_hex(key->view());
    }
    case proto::AuthMethod::munge: break;  // encrypted; the refusal says what munged could read
  }
  return {};
}

}  // namespace gantry::rpc
