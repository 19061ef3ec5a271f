// Tokens that speak for users: made here, checked in rpc/identity.cc.
#include "common/auth/token.h"
#include "common/auth/users.h"
#include "common/codec/codec.h"
#include "ctld/core/authorise.h"
#include "ctld/rpc/token_rules.h"
#include "ctld/server.h"

namespace gantry::ctld {

void Server::make_token(const rpc::Session& session, std::uint64_t request, std::string_view body) {
  const auto message = codec::decode<proto::MakeToken>(body);
  if (!message) return refuse(session, request, message.error());
  core::Identity who = *session.identity;
  core::take_grants(core_->state(), who);
  const auto token =
      rpc::token_for(who, *message, config_.controller.max_token_lifetime, clock_.now());
  if (!token) return refuse(session, request, token.error());
  if (auto known = auth::find_user(token->user); !known)
    return refuse(session, request, known.error());
  log_.write(LogLevel::info, "made a token",
             {{"user", token->user},
              {"by", session.identity->owner.user},
              {"seconds", (token->expires - token->issued).seconds()}});
  proto::TokenMade reply{auth::make_token(secrets_.token, *token), token->user, token->expires};
  send_to(session, static_cast<std::uint16_t>(proto::number_of<proto::TokenMade>), request,
          codec::encode(reply));
}

}  // namespace gantry::ctld
