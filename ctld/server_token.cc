// Tokens that speak for users: made here, checked in rpc/identity.cc.
#include "common/auth/token.h"
#include "common/auth/users.h"
#include "common/codec/codec.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

constexpr Duration kUsualLifetime = minutes(30);  // as in Slurm

Result<auth::Token> token_for(const core::Identity& who, const proto::MakeToken& asked,
                              Duration longest, Instant now) {
  const std::string& user = asked.user.empty() ? who.owner.user : asked.user;
  if (user != who.owner.user && who.role != proto::Role::admin)
    return fail(ErrorCode::permission_denied,
                who.owner.user + " is no administrator: a token is for oneself");
  if (auto known = auth::find_user(user); !known) return tl::unexpected(known.error());
  Duration lifetime = asked.lifetime;
  if (lifetime == Duration{}) lifetime = std::min(kUsualLifetime, longest);
  if (lifetime < seconds(1) || lifetime > longest)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a token is valid for 1 to {} s (controller.max_token_lifetime)",
                            longest.seconds()));
  return auth::Token{user, now, now + lifetime};
}

}  // namespace

void Server::make_token(const rpc::Session& session, std::uint64_t request, std::string_view body) {
  const auto message = codec::decode<proto::MakeToken>(body);
  if (!message) return refuse(session, request, message.error());
  // A job speaks for itself only; what it could take along would speak for its user after it.
  if (session.relayed())
    return refuse(session, request,
                  {ErrorCode::permission_denied, "inside a job there are no tokens"});
  const auto token =
      token_for(*session.identity, *message, config_.controller.max_token_lifetime, clock_.now());
  if (!token) return refuse(session, request, token.error());
  log_.write(LogLevel::info, "made a token",
             {{"user", token->user},
              {"by", session.identity->owner.user},
              {"seconds", (token->expires - token->issued).seconds()}});
  proto::TokenMade reply{auth::make_token(secrets_.token, *token), token->user, token->expires};
  send_to(session, static_cast<std::uint16_t>(proto::number_of<proto::TokenMade>), request,
          codec::encode(reply));
}

}  // namespace gantry::ctld
