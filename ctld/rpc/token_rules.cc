#include "ctld/rpc/token_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/session.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/request.h"

namespace gantry::rpc {

Result<auth::Token> token_for(const core::Identity& who, const proto::MakeToken& asked,
                              Duration longest, Instant now) {
  const auto denied = [](std::string why) {
    return fail(ErrorCode::permission_denied, std::move(why));
  };
  const std::string& user = asked.user.empty() ? who.owner.user : asked.user;
  if (user != who.owner.user && who.token_ends)
    return denied(
        fmt::format("a token of {} makes tokens for {} only", who.owner.user, who.owner.user));
  if (user != who.owner.user && !core::is_admin(who))
    return denied(who.owner.user + " is no administrator: a token is for oneself");
  if (who.token_ends) longest = std::min(longest, *who.token_ends - now);
  Duration lifetime = asked.lifetime;
  if (lifetime == Duration{}) lifetime = std::min(kUsualTokenLifetime, longest);
  if (lifetime < seconds(1) || lifetime > longest) {
    if (who.token_ends)
      return denied(
          fmt::format("the token that was shown is valid for {} s, and one that it makes "
                      "for no longer",
                      std::max(longest, Duration{}).seconds()));
    return fail(ErrorCode::invalid_argument,
                fmt::format("a token is valid for 1 to {} s (controller.max_token_lifetime)",
                            longest.seconds()));
  }
  return auth::Token{user, now, now + lifetime};
}

}  // namespace gantry::rpc
