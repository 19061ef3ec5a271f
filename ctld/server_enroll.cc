// Tokens by which nodes enroll themselves: gctl enroll --token makes one, a node daemon shows it at
// its first start. A guess costs as much as a wrong credential does, and is logged like one.
#include "common/auth/enroll_token.h"
#include "common/codec/codec.h"
#include "ctld/core/node/enrollment.h"
#include "ctld/core/state/state.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

template <class T>
constexpr std::uint16_t number = static_cast<std::uint16_t>(proto::number_of<T>);

}  // namespace

void Server::enroll_by_token(rpc::Session& session, const net::MessageHeader& header,
                             std::string_view body) {
  const auto message = codec::decode<proto::UseEnrollToken>(body);
  if (!message) return refuse(session, header.request, message.error());
  if (const auto node = core_->node_of_key(session.z85); node == message->node)
    return send_to(session, number<proto::Ok>, header.request, codec::encode(proto::Ok{}));
  const std::string address = router_.address_of(session.peer);
  const std::string network = net::network_of(address);
  const Instant now = clock_.now();
  const std::string hash = auth::hash_of_enroll_token(message->token);
  const bool counts = core::token_counts(core_->state(), now, hash, message->node);
  if (!counts || core_->node_of_key(session.z85) || !refusals_.may_look(network, now)) {
    const Error error{ErrorCode::unauthenticated, std::string(core::kTokenRefused)};
    refusals_.refused(network, now);
    ++refused_credentials_;
    log_.write(refused_logs_[network], LogLevel::warning, "refused an enrolment token",
               {{"address", address}, {"claims", fmt::format("{:.64}", message->node)}});
    (void)kept(audit_.refused(session, proto::kRowOf<proto::UseEnrollToken>,
                              fmt::format("claims={:.64} address={}", message->node, address),
                              error));
    refuse(session, header.request, error);
    if (++session.refusals >= kMostRefusals) cut_off(session);
    return;
  }
  log_.write(LogLevel::info, "enrolled a node by its token",
             {{"node", message->node}, {"address", address}});
  core::Identity who = rpc::nobody();
  who.role = proto::Role::admin;
  who.owner.user = "(token of " + message->node + ")";
  net::MessageHeader as = header;
  as.type = number<proto::EnrollNode>;
  step_as(session, as, std::move(who), proto::EnrollNode{message->node, session.z85, hash});
}

}  // namespace gantry::ctld
