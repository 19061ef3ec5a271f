// Makes tokens that act for users; rpc/identity.cc checks them.
#include "common/auth/token.h"
#include "common/auth/users.h"
#include "common/codec/codec.h"
#include "ctld/notary.h"
#include "ctld/rpc/token_rules.h"
#include "ctld/server.h"

namespace gantry::ctld {

void Server::make_service_token(const Asked& asked, const proto::MakeToken& message) {
  const auto wish = rpc::service_token_for(core_->state(), asked.who, message, clock_.now());
  if (!wish) return refuse(asked.session, asked.request, wish.error());
  const auto made = notary_->service_token(*wish);
  if (!made) return refuse(asked.session, asked.request, made.error());
  log_.write(LogLevel::info, "made an identity token",
             {{"user", wish->user}, {"tenant", wish->tenant}, {"audience", wish->audience}});
  send_to(asked.session, static_cast<std::uint16_t>(proto::number_of<proto::TokenMade>),
          asked.request, codec::encode(*made));
}

void Server::make_token(const Asked& asked, const proto::MakeToken& message) {
  if (!message.audience.empty()) return make_service_token(asked, message);
  if (!message.tenant.empty())
    return refuse(asked.session, asked.request,
                  {ErrorCode::invalid_argument, "a tenant belongs to a token with an audience"});
  const auto token =
      rpc::token_for(asked.who, message, config_.controller.max_token_lifetime, clock_.now());
  if (!token) return refuse(asked.session, asked.request, token.error());
  if (auto known = auth::find_user(token->user); !known)
    return refuse(asked.session, asked.request, known.error());
  log_.write(LogLevel::info, "made a token",
             {{"user", token->user},
              {"by", asked.who.owner.user},
              {"seconds", (token->expires - token->issued).seconds()}});
  proto::TokenMade reply{auth::make_token(secrets_.token, *token), token->user, token->expires};
  send_to(asked.session, static_cast<std::uint16_t>(proto::number_of<proto::TokenMade>),
          asked.request, codec::encode(reply));
}

}  // namespace gantry::ctld
