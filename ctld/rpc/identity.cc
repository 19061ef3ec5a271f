// Finds out who a client is: munge gives a uid, a registered key or a token gives a login name, and
// all are looked up in the same user database.
#include "ctld/rpc/identity.h"

#include <algorithm>

#include "common/auth/munge.h"
#include "common/auth/registered_key.h"
#include "common/auth/token.h"
#include "common/proto/session.h"
#include "ctld/core/request.h"

namespace gantry::rpc {

IdentityCheck::IdentityCheck(std::vector<std::string> admins, bool allow_munge,
                             UserOfKey user_of_key, const auth::SigningSeed& token_key)
    : admins_(std::move(admins)),
      allow_munge_(allow_munge),
      user_of_key_(std::move(user_of_key)),
      token_key_(token_key) {}

Result<void> IdentityCheck::accept_issuer(const ControllerConfig& c) {
  if (c.oidc_issuer.empty()) return {};
  auto issuer =
      secrets::OutsideIssuer::open({c.oidc_issuer, c.oidc_audience, c.oidc_keys, c.oidc_user_claim,
                                    c.oidc_groups_claim, c.max_token_lifetime});
  if (!issuer) return fail(issuer.error().code, "controller.oidc_keys: " + issuer.error().message);
  outside_ = std::move(*issuer);
  return {};
}

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

// Fills in what a token contains besides its user: its end, and groups.
Result<Owner> IdentityCheck::by_token(std::string_view token, Instant now, core::Identity& who) {
  const bool by_another = secrets::OutsideIssuer::may_have_made(token);
  if (by_another && !outside_)
    return fail(ErrorCode::unauthenticated,
                "the token is not of this controller, and it takes no others "
                "(controller.oidc_issuer)");
  if (!by_another) {
    ASSIGN(ours, auth::check_token(token_key_, token, now));
    who.token_ends = ours->expires;
    return auth::find_user(ours->user);
  }
  ASSIGN(theirs, outside_->check(token, now));
  who.token_ends = theirs->expires;
  who.groups = theirs->groups;
  auto owner = auth::find_user(theirs->user);
  if (owner && owner->uid == Uid{0})
    return fail(ErrorCode::unauthenticated,
                "a token of another issuer than the controller does not speak for root");
  return owner;
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
    ASSIGN(who, auth::munge_decode(request.credential, session));
    owner = users_.find(who->uid, now);
  } else if (request.method == proto::AuthMethod::token) {
    owner = by_token(request.credential, now, proof.identity);
  } else {
    ASSIGN(key, auth::check_key_credential(request.credential, session, now));
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
  const std::vector<std::string> here = groups_.of(*owner, now);
  proof.identity.groups.insert(proof.identity.groups.end(), here.begin(), here.end());
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
    case proto::AuthMethod::token:
      return outside_ && secrets::OutsideIssuer::may_have_made(request.credential)
                 ? outside_->claimed(request.credential)
                 : auth::claimed_user(request.credential);
    case proto::AuthMethod::key: {
      const auto key = auth::claimed_key(request.credential);
      if (!key) return {};
      const auto user = user_of_key_(*key);
      return user ? *user : "key " + net::to_hex(key->view());
    }
    case proto::AuthMethod::munge:
      break;  // the token is encrypted; the refusal has what munged could read
  }
  return {};
}

}  // namespace gantry::rpc
