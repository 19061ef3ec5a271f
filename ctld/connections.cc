// Identities of the peers of connections: how long they are valid, and how many requests their
// users may send.
//
// An identity is valid as long as its proof: a token until its end, a registered key until it is
// removed, and each until its connection closes. A peer that has not proved an identity may send a
// few messages, and has little time. Refusals are counted and logged, with the name that the peer
// gave and its address.
#include "ctld/connections.h"

#include <time.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/proto/message_table.h"
#include "common/proto/node_relay.h"
#include "common/proto/session.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/rpc/dispatch.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kMostNetworks = 1'024;  // networks whose refusals are logged separately
// Beyond this number of peers, each user gets only a few connections, because the router must keep
// room for strangers and nodes.
constexpr std::size_t kMostPeers = 12'288;

}  // namespace

Connections::Connections(const Shell& shell, net::Router router, const auth::SigningSeed& token)
    : shell_(shell),
      router_(std::move(router)),
      identities_(
          shell.config.controller.admins, shell.config.controller.allow_munge,
          [&shell](const auth::VerifyKey& key) {
            return shell.core.user_of_key(net::to_hex(key.view()));
          },
          token),
      limits_({shell.config.controller.max_user_connections,
               shell.config.controller.max_user_requests}) {
  router_.on_closed([this](net::PeerId peer) { peer_closed(peer); });
}

rpc::Session& Connections::of_peer(const net::Incoming& incoming) {
  std::optional<core::ConnectionId> dropped;
  rpc::Session& session = peers_.of_peer(incoming.peer, incoming.key, dropped);
  forget(dropped);
  return session;
}

rpc::Session& Connections::of_job(const std::string& node, std::uint64_t channel) {
  std::optional<core::ConnectionId> dropped;
  rpc::Session& session = jobs_.of_channel(node, channel, dropped);
  forget(dropped);
  return session;
}

rpc::Session& Connections::of_user(const std::string& node, std::uint64_t channel,
                                   net::PeerId peer) {
  std::optional<core::ConnectionId> dropped;
  rpc::Session& session = users_.of_channel(node, channel, dropped);
  session.of_user = true;
  session.peer = peer;
  forget(dropped);
  return session;
}

void Connections::forget_job(const std::string& node, std::uint64_t channel) {
  if (const rpc::Session* session = jobs_.find_channel(node, channel)) forget(session->id);
}

void Connections::forget_user(const std::string& node, std::uint64_t channel) {
  if (const rpc::Session* session = users_.find_channel(node, channel)) forget(session->id);
}

rpc::Session* Connections::find(core::ConnectionId id) {
  if (id.value() < kFirstUserChannel) return peers_.find(id);
  return id.value() < kFirstChannel ? users_.find(id) : jobs_.find(id);
}

void Connections::forget(std::optional<core::ConnectionId> dropped) {
  if (!dropped) return;
  rpc::Session* session = find(*dropped);
  if (session == nullptr) return;
  if (session->counted) limits_.disconnected(*session->counted);
  (void)shell_.kept(shell_.audit.forget(*dropped));
  if (!session->relayed())
    peers_.drop(*dropped);
  else if (session->of_user)
    users_.drop(*dropped);
  else
    jobs_.drop(*dropped);
  shell_.step(core::ConnectionClosed{*dropped});
}

void Connections::peer_closed(net::PeerId peer) {
  const rpc::Session* session = peers_.find_peer(peer);
  if (session == nullptr) return;
  const core::ConnectionId id = session->id;
  // A login node closes the connections that it relays when it sees that its own has ended.
  if (session->standing == net::Standing::node && users_.size() > 0)
    for (const core::ConnectionId user : users_.relayed_over(peer)) forget(user);
  forget(id);
}

bool Connections::unlimited(const core::Identity& who) const {
  return who.owner.uid == Uid{0} || core::is_operator(shell_.core.state(), who);
}

Duration Connections::loop_time() {
  timespec t{};
  const int failed = ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  GANTRY_ASSERT(failed == 0, "a thread has a clock");
  return {std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1'000};
}

// Counts one more message of this session. The error is the answer if the limit is exceeded.
Result<void> Connections::admit(rpc::Session& session) {
  const Instant now = shell_.clock.now();
  if (session.identity && session.identity->token_ends && *session.identity->token_ends <= now)
    lose_identity(session, {ErrorCode::unauthenticated, "the token is no longer valid"});
  if (session.identity && !session.registered_key.empty() &&
      shell_.core.user_of_key(session.registered_key) != session.identity->owner.user)
    lose_identity(session, {ErrorCode::unauthenticated, "this key is no longer registered"});
  if (session.identity) {
    if (unlimited(*session.identity)) return {};
    const Owner& owner = session.identity->owner;
    return limits_.requested(owner.uid, owner.user, now);
  }
  if (session.relayed() || ++session.strange_messages <= kMostStrangeMessages) return {};
  cut_off(session);
  return fail(ErrorCode::unauthenticated,
              fmt::format("{} messages without a credential", kMostStrangeMessages));
}

Result<void> Connections::count(rpc::Session& session) {
  const Owner& owner = session.identity->owner;
  TRY(limits_.connected(owner.uid, owner.user));
  session.counted = owner.uid;
  return {};
}

void Connections::set_standing(rpc::Session& session, net::Standing standing) {
  if (session.standing == standing) return;
  session.standing = standing;
  router_.set_standing(session.peer, standing,
                       session.identity ? fmt::format("uid {}", session.identity->owner.uid.value())
                                        : std::string());
}

void Connections::cut_off(rpc::Session& session) {
  session.cut_off = true;
  leaving_.push_back(session.peer);
}

void Connections::lose_identity(rpc::Session& session, Error why) {
  session.identity.reset();
  session.registered_key.clear();
  session.refused = std::move(why);
  if (session.counted) limits_.disconnected(*session.counted);
  session.counted.reset();
  set_standing(session, net::Standing::stranger);
}

void Connections::establish(rpc::Session& session, rpc::IdentityCheck::Proof proof) {
  session.identity = std::move(proof.identity);
  session.registered_key = std::move(proof.registered_key);
  session.refused.reset();
  session.strange_messages = 0;
  set_standing(session, net::Standing::known);
}

void Connections::authenticate(rpc::Session& session, std::uint64_t request,
                               std::string_view body) {
  const auto message = codec::decode<proto::Authenticate>(body);
  if (!message) {
    refuse(session, request, message.error());
    return;
  }
  if (!may_look(session)) {
    refuse(session, request,
           {ErrorCode::too_many,
            "too many credentials from this address were refused: try again later"});
    return;
  }
  auto proof = identities_.check(*message, session.key, shell_.clock.now());
  if (const auto fault = identities_.new_fault(); !fault.empty())
    shell_.log.write(LogLevel::error, "the keys of oidc_issuer are those from before",
                     {{"error", fault}});
  if (!proof) {
    refuse_credential(session, request, *message, proof.error());
    return;
  }
  lose_identity(session, {ErrorCode::unauthenticated, "authenticate first"});
  const Owner& owner = proof->identity.owner;
  if (!unlimited(proof->identity)) {
    Result<void> room = limits_.requested(owner.uid, owner.user, shell_.clock.now());
    if (room) room = limits_.connected(owner.uid, owner.user, peers_.size() > kMostPeers);
    if (!room) {
      session.refused = room.error();
      refuse(session, request, room.error());
      return;
    }
    session.counted = owner.uid;
  }
  establish(session, std::move(*proof));
  if (!message->want_reply) return;
  proto::AuthReply reply;
  reply.uid = session.identity->owner.uid;
  reply.user = session.identity->owner.user;
  reply.role = session.identity->role;
  send(session, request, reply);
}

bool Connections::may_look(const rpc::Session& session) {
  return refusals_.may_look(net::network_of(router_.address_of(session.peer)), shell_.clock.now());
}

void Connections::note_refused(rpc::Session& session, const proto::MessageRow& row,
                               std::string_view what, const std::string& claims,
                               const std::string& method, const Error& error) {
  const std::string address = router_.address_of(session.peer);
  const std::string network = net::network_of(address);
  refusals_.refused(network, shell_.clock.now());
  ++refused_credentials_;
  if (refused_logs_.size() >= kMostNetworks && !refused_logs_.contains(network))
    refused_logs_.clear();
  LogLimit& limit = refused_logs_[network];
  if (method.empty())
    shell_.log.write(limit, LogLevel::warning, what, {{"address", address}, {"claims", claims}});
  else
    shell_.log.write(
        limit, LogLevel::warning, what,
        {{"address", address}, {"method", method}, {"claims", claims}, {"error", error.message}});
  (void)shell_.kept(shell_.audit.refused(
      session, row, fmt::format("claims={:.64} address={}", claims, address), error));
}

void Connections::refuse_credential(rpc::Session& session, std::uint64_t request,
                                    const proto::Authenticate& message, Error error) {
  note_refused(session, proto::kRowOf<proto::Authenticate>, "refused a credential",
               identities_.claimed(message), std::string(enum_name(message.method)), error);
  refuse(session, request, error);
  lose_identity(session, std::move(error));
  if (++session.refusals >= kMostRefusals) cut_off(session);
}

void Connections::refuse(const rpc::Session& session, std::uint64_t request, const Error& error) {
  (void)shell_.kept(shell_.audit.end(session.id, request, &error));
  const rpc::Encoded encoded = rpc::encode_error(error);
  send_to(session, encoded.type, request, encoded.body);
}

void Connections::send_to(const rpc::Session& session, std::uint16_t type, std::uint64_t request,
                          const Bytes& body) {
  const auto too_large = [&](const Error& error) {
    if (type != static_cast<std::uint16_t>(proto::number_of<proto::ErrorReply>))
      refuse(session, request,
             {ErrorCode::out_of_space,
              fmt::format("the answer is {}: ask for less at a time", error.message)});
  };
  if (!session.relayed()) {
    const net::HeaderBytes header({proto::kProtocolVersion, type, request});
    const auto sent = router_.send(session.peer, header.view(), body);
    if (sent) return;
    if (sent.error().code == ErrorCode::invalid_argument) return too_large(sent.error());
    // The peer has gone or does not read, so the answers that wait for it are useless.
    router_.close(session.peer);
    shell_.loop.post([this, id = session.id] { forget(id); });
    return;
  }
  const auto sent = send_relayed(session.node, {session.channel, type, request, body});
  if (!sent) too_large(sent.error());
}

void Connections::greet_later(core::ConnectionId connection, std::uint64_t request,
                              proto::HelloReply reply) {
  greetings_.push_back({connection, request, std::move(reply)});
}

void Connections::send_greetings() {
  for (const Greeting& greeting : std::exchange(greetings_, {}))
    if (const rpc::Session* session = find(greeting.connection))
      send(*session, greeting.request, greeting.reply);
}

void Connections::close_leaving() {
  for (const net::PeerId peer : std::exchange(leaving_, {})) router_.close(peer);
}

void Connections::node_is_at(const std::string& node, const rpc::Session& session) {
  links_[node] = {session.peer, session.z85};
}

std::optional<net::PeerId> Connections::peer_of(const std::string& node) {
  const auto link = links_.find(node);
  if (link == links_.end()) return std::nullopt;
  if (shell_.core.node_of_key(link->second.key) == node) return link->second.peer;
  links_.erase(link);  // the key belongs to another node now
  return std::nullopt;
}

Result<void> Connections::send_to_node(const std::string& node, std::uint16_t type,
                                       const Bytes& body) {
  const auto link = links_.find(node);
  if (link == links_.end()) return {};
  const net::HeaderBytes header({proto::kProtocolVersion, type, 0});
  const auto sent = router_.send(link->second.peer, header.view(), body);
  // A message that is too large does not mean a broken connection.
  if (!sent && sent.error().code != ErrorCode::invalid_argument) links_.erase(link);
  return sent;
}

std::vector<std::string> Connections::nodes() const {
  std::vector<std::string> out;
  for (const auto& [node, link] : links_) out.push_back(node);
  return out;
}

Result<void> Connections::send_relayed(const std::string& node, const proto::RelayReply& reply) {
  const auto sent = send_to_node(
      node, static_cast<std::uint16_t>(proto::number_of<proto::RelayReply>), codec::encode(reply));
  if (sent || sent.error().code == ErrorCode::invalid_argument) return sent;
  return {};
}

std::string Connections::metrics() const {
  return fmt::format(
      "# HELP gantry_sessions Connections that have sent a message.\n"
      "# TYPE gantry_sessions gauge\n"
      "gantry_sessions{{from=\"peer\"}} {}\n"
      "gantry_sessions{{from=\"job\"}} {}\n"
      "gantry_sessions{{from=\"login node\"}} {}\n"
      "# HELP gantry_refused_total Credentials that were refused, and what was beyond a user's "
      "limits.\n"
      "# TYPE gantry_refused_total counter\n"
      "gantry_refused_total{{what=\"credential\"}} {}\n"
      "gantry_refused_total{{what=\"limit\"}} {}\n",
      peers_.size(), jobs_.size(), users_.size(), refused_credentials_, limits_.refused());
}

}  // namespace gantry::ctld
