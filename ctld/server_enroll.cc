// Tokens with which nodes enroll themselves: gctl enroll --token makes one, and a node daemon
// presents it at its first start. A wrong token counts and is logged like a wrong credential.
#include "common/auth/enroll_token.h"
#include "common/codec/codec.h"
#include "common/proto/control.h"
#include "common/proto/message_table.h"
#include "common/proto/session.h"
#include "ctld/core/node/enrollment.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/server.h"

namespace gantry::ctld {
void Server::enroll_by_token(rpc::Session& session, const net::MessageHeader& header,
                             std::string_view body) {
  const auto message = codec::decode<proto::UseEnrollToken>(body);
  if (!message) return connections_.refuse(session, header.request, message.error());
  if (const auto node = core_->node_of_key(session.z85); node == message->node)
    return connections_.send(session, header.request, proto::Ok{});
  const std::string hash = auth::hash_of_enroll_token(message->token);
  const bool counts = core::token_counts(core_->state(), clock_.now(), hash, message->node);
  if (!counts || core_->node_of_key(session.z85) || !connections_.may_look(session)) {
    const Error error{ErrorCode::unauthenticated, std::string(core::kTokenRefused)};
    connections_.note_refused(session, proto::kRowOf<proto::UseEnrollToken>,
                              "refused an enrolment token", fmt::format("{:.64}", message->node),
                              "", error);
    connections_.refuse(session, header.request, error);
    if (++session.refusals >= kMostRefusals) connections_.cut_off(session);
    return;
  }
  log_.write(
      LogLevel::info, "enrolled a node by its token",
      {{"node", message->node}, {"address", connections_.router().address_of(session.peer)}});
  core::Identity who = rpc::nobody();
  who.role = proto::Role::admin;
  who.owner.user = "(token of " + message->node + ")";
  net::MessageHeader as = header;
  as.type = static_cast<std::uint16_t>(proto::number_of<proto::EnrollNode>);
  step_as(session, as, std::move(who), proto::EnrollNode{message->node, session.z85, hash});
}

}  // namespace gantry::ctld
