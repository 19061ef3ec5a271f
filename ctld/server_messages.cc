// Messages from the router. For each one the server finds out who sent it, whether that sender may
// send it, and whether it is valid; then it passes the message on to the receiver that the table of
// messages names.
#include "ctld/server.h"

#include <chrono>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/overloaded.h"
#include "common/proto/any/message_visit.h"
#include "common/version.h"
#include "ctld/acct/stored_rows.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/notary.h"
#include "ctld/rpc/dispatch.h"
#include "ctld/rpc/identity.h"

namespace gantry::ctld {
namespace {

template <class T>
constexpr std::uint16_t number = static_cast<std::uint16_t>(proto::number_of<T>);

constexpr auto kHere = proto::Place::controller;

constexpr bool of_sessions(const proto::MessageRow& m) {
  return m.taker == proto::Taker::sessions;
}
// answer(), receive_one() and Relays handle these messages.
static_assert(std::is_same_v<proto::MessagesWhere<of_sessions>,
                             std::variant<proto::Hello, proto::Authenticate, proto::UseEnrollToken,
                                          proto::NodeRelay, proto::UserRelay, proto::UsersGone>>);

bool version_accepted(std::uint16_t protocol) {
  return protocol >= proto::kOldestProtocol && protocol <= proto::kProtocolVersion;
}

Error wrong_version(std::uint16_t theirs) {
  return {ErrorCode::version_mismatch,
          fmt::format("you speak protocol {}, this controller {} to {}; install matching versions",
                      theirs, proto::kOldestProtocol, proto::kProtocolVersion)};
}

}  // namespace

bool Server::receive_one() {
  if (failed_) return false;
  std::optional<net::Incoming> incoming = connections_.router().receive();
  if (!incoming) return false;
  rpc::Session& session = connections_.of_peer(*incoming);
  if (session.cut_off) return true;
  const auto header = net::decode_header(incoming->header);
  if (!header || incoming->frames != net::kFrames) {
    (void)connections_.admit(session);  // such a message counts like any other
    connections_.refuse(
        session, 0,
        {ErrorCode::malformed, fmt::format("a message has two frames, a 12-byte header and a "
                                           "body; this one has {} frames, the first of {} bytes",
                                           incoming->frames, incoming->header.size())});
    return true;
  }
  const auto node = core_->node_of_key(session.z85);
  if (!version_accepted(header->protocol)) {
    if (!node) (void)connections_.admit(session);
    connections_.refuse(session, header->request, wrong_version(header->protocol));
    return true;
  }
  if (node) {
    connections_.set_standing(session, net::Standing::node);
    if (header->type == number<proto::UseEnrollToken>) {
      enroll_by_token(session, *header, incoming->body);
      return true;
    }
    connections_.node_is_at(*node, session);
    from_node(*node, *header, *incoming);
  } else {
    // The key no longer belongs to a node, because the node has a new key.
    if (session.standing == net::Standing::node)
      connections_.set_standing(session, net::Standing::stranger);
    from_client(session, *header, incoming->body);
  }
  return true;
}

void Server::from_node(const std::string& node, const net::MessageHeader& header,
                       net::Incoming& incoming) {
  if (const auto sent = proto::check_sender(header.type, proto::Sender::node, kHere); !sent) {
    log_.write(LogLevel::warning, "ignored a message of a node",
               {{"node", node}, {"error", sent.error().message}});
    return;
  }
  if (relays_.carried(node, header.type, incoming)) return;
  auto message = rpc::decode_node(header.type, incoming.body);
  if (!message) {
    log_.write(LogLevel::warning, "ignored a message of a node",
               {{"node", node}, {"error", message.error().message}});
    return;
  }
  if (admit(node, *message)) step(core::FromNode{node, std::move(*message)});
}

void Server::from_client(rpc::Session& session, const net::MessageHeader& header,
                         std::string_view body) {
  if (const auto admitted = connections_.admit(session); !admitted) {
    connections_.refuse(session, header.request, admitted.error());
    return;
  }
  const auto uid = session.identity ? std::optional(session.identity->owner.uid) : std::nullopt;
  const Duration began = Connections::loop_time();
  answer(session, header, body);  // the session may be gone after this
  if (uid) connections_.took(*uid, Connections::loop_time() - began);
}

void Server::answer(rpc::Session& session, const net::MessageHeader& header,
                    std::string_view body) {
  if (const auto sent = proto::check_sender(header.type, session.sender(), kHere); !sent) {
    const bool stranger = sent.error().code == ErrorCode::unauthenticated;
    if (const auto row = proto::find_message(header.type); row && session.identity)
      (void)shell_.kept(audit_.refused(session, *row, "", sent.error()));
    connections_.refuse(session, header.request,
                        stranger ? session.refused.value_or(sent.error()) : sent.error());
    return;
  }
  switch (proto::find_message(header.type)->taker) {
    case proto::Taker::sessions:
      if (header.type == number<proto::Hello>) return hello(session, header.request, body);
      // Only a direct connection can authenticate; a relayed one gets its identity from the node.
      if (session.relayed())
        return connections_.refuse(session, header.request,
                                   {ErrorCode::permission_denied, "a node has said who this is"});
      if (header.type == number<proto::UseEnrollToken>)
        return enroll_by_token(session, header, body);
      return connections_.authenticate(session, header.request, body);
    case proto::Taker::shell: return answer_here(session, header, body);
    default: break;
  }
  auto message = rpc::decode_client(header.type, body);
  if (!message) {
    connections_.refuse(session, header.request, message.error());
    return;
  }
  if (auto* enroll = message->get_if<proto::EnrollNode>()) enroll->token_hash.clear();
  if (hook_.asks(session, header, *message)) return;
  step_as(session, header, session.identity.value_or(rpc::nobody()), std::move(*message));
}

// A request for the core.
void Server::step_as(rpc::Session& session, const net::MessageHeader& header, core::Identity who,
                     core::ClientMessage message) {
  audit_.begin(session, header, message);
  if (auto* secret = message.get_if<proto::SetSecret>())
    if (auto sealed = notary_->seal(*secret); !sealed)
      return connections_.refuse(session, header.request, sealed.error());
  auto* note = message.get_if<proto::NoteJobs>();
  if (note != nullptr) {
    // A job may have just ended, with a row that is not stored yet.
    end_of_turn();
    fold();
    if (auto found = acct::attach_stored(*store_, *note); !found)
      return connections_.refuse(session, header.request, found.error());
  }
  core::ClientRequest request;
  request.connection = session.id;
  request.request = header.request;
  request.who = std::move(who);
  request.message = std::move(message);
  const std::string user = request.who.owner.user;
  const auto begun = std::chrono::steady_clock::now();
  const bool noted = note != nullptr;
  step(std::move(request));
  if (noted) {  // requests from now on get the new row, and the next note replaces that one
    end_of_turn();
    fold();
  }
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begun);
  core_->note_call(proto::message_name(header.type), user, microseconds(took.count()));
}

// Messages that the shell answers are checked with the same rules as messages for the core.
void Server::answer_here(const rpc::Session& session, const net::MessageHeader& header,
                         std::string_view body) {
  auto message = rpc::decode_shell(header.type, body);
  if (!message) return connections_.refuse(session, header.request, message.error());
  audit_.begin(session, header, *message);
  const core::ConnectionId connection =
      session.id;  // the session may be gone when the answer comes
  Asked asked{session, header.request, *session.identity};
  if (auto in = core::let_in(core_->state(), asked.who, *message); !in)
    return connections_.refuse(session, header.request, in.error());
  proto::visit(Overloaded{[&](const proto::Reconfigure&) { reconfigure(asked); },
                          [&](const proto::MakeToken& m) { answers_->make_token(asked, m); },
                          [&](const proto::QueryHistory& m) { answers_->query_history(asked, m); },
                          [&](const proto::WhatIf& m) { answers_->what_if(asked, m); },
                          [&](const proto::PlanMigModes&) { answers_->plan_modes(asked); },
                          [&](const proto::ReadAudit& m) { answers_->read_audit(asked, m); }},
               *message);
  (void)shell_.kept(audit_.end(connection, header.request, nullptr));  // if it was not refused
}

void Server::hello(const rpc::Session& session, std::uint64_t request, std::string_view body) {
  const auto message = codec::decode<proto::Hello>(body);
  if (!message) {
    connections_.refuse(session, request, message.error());
    return;
  }
  if (!version_accepted(message->protocol)) {
    connections_.refuse(session, request, wrong_version(message->protocol));
    return;
  }
  proto::HelloReply reply;
  reply.protocol = proto::kProtocolVersion;
  reply.cluster = config_.cluster;
  reply.version = kVersion;
  reply.epoch = core_->epoch();
  reply.now = clock_.now();
  connections_.greet_later(session.id, request, std::move(reply));
}

}  // namespace gantry::ctld
