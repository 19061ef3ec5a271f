// Makes tokens that act for users; rpc/identity.cc checks them.
#include "common/auth/token.h"
#include "common/auth/users.h"
#include "common/codec/codec.h"
#include "ctld/rpc/token_rules.h"
#include "ctld/server.h"

namespace gantry::ctld {

void Server::make_token(const Asked& asked, const proto::MakeToken& message) {
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
