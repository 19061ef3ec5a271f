// Makes tokens that act for users; rpc/identity.cc checks them. And identity tokens with which
// users call services.
#include "common/auth/token.h"
#include "common/auth/users.h"
#include "common/codec/codec.h"
#include "ctld/notary.h"
#include "ctld/rpc/token_rules.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

Result<proto::TokenMade> service_token(const core::State& state, const Notary& notary,
                                       const core::Identity& who, const proto::MakeToken& message,
                                       Instant now, const Logger& log) {
  ASSIGN(wish, core::service_token_for(state, who, message, now));
  auto made = notary.service_token(*wish);
  if (made)
    log.write(LogLevel::info, "made an identity token",
              {{"user", wish->user}, {"tenant", wish->tenant}, {"audience", wish->audience}});
  return made;
}

Result<proto::TokenMade> user_token(const auth::SigningSeed& key, const core::Identity& who,
                                    const proto::MakeToken& message, Duration longest, Instant now,
                                    const Logger& log) {
  if (!message.tenant.empty())
    return fail(ErrorCode::invalid_argument, "a tenant belongs to a token with an audience");
  ASSIGN(token, rpc::token_for(who, message, longest, now));
  TRY(auth::find_user(token->user));
  log.write(LogLevel::info, "made a token",
            {{"user", token->user},
             {"by", who.owner.user},
             {"seconds", (token->expires - token->issued).seconds()}});
  return proto::TokenMade{auth::make_token(key, *token), token->user, token->expires};
}

}  // namespace

void Server::make_token(const Asked& asked, const proto::MakeToken& message) {
  const auto made =
      message.audience.empty()
          ? user_token(secrets_.token, asked.who, message, config_.controller.max_token_lifetime,
                       clock_.now(), log_)
          : service_token(core_->state(), *notary_, asked.who, message, clock_.now(), log_);
  if (!made) return refuse(asked.session, asked.request, made.error());
  send_to(asked.session, static_cast<std::uint16_t>(proto::number_of<proto::TokenMade>),
          asked.request, codec::encode(*made));
}

}  // namespace gantry::ctld
