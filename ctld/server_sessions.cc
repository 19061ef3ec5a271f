// Identities of the peers of connections: how long they are valid, and how much their users may
// ask.
//
// An identity is valid as long as what proved it: a token until its end, a registered key until it
// is removed, and each until its connection closes. A peer that has not proved an identity may send
// a few messages, and has little time. Refusals are counted and logged, with the user that was
// claimed and the address.
#include <time.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "ctld/core/access/authorise.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kMostNetworks = 1'024;  // networks whose refusals are logged separately
// Beyond this number of peers, each user gets only a few connections, because the router must keep
// room for strangers and nodes.
constexpr std::size_t kMostPeers = 12'288;

}  // namespace

rpc::Session* Server::find_session(core::ConnectionId id) {
  if (id.value() < kFirstUserChannel) return sessions_.find(id);
  return id.value() < kFirstChannel ? user_channels_.find(id) : channels_.find(id);
}

void Server::forget_session(std::optional<core::ConnectionId> dropped) {
  if (!dropped) return;
  rpc::Session* session = find_session(*dropped);
  if (session == nullptr) return;
  if (session->counted) limits_.disconnected(*session->counted);
  (void)kept(audit_.forget(*dropped));
  if (!session->relayed())
    sessions_.drop(*dropped);
  else if (session->of_user)
    user_channels_.drop(*dropped);
  else
    channels_.drop(*dropped);
  step(core::ConnectionClosed{*dropped});
}

void Server::peer_closed(net::PeerId peer) {
  const rpc::Session* session = sessions_.find_peer(peer);
  if (session == nullptr) return;
  const core::ConnectionId id = session->id;
  // A login node closes the connections that it relays when it sees that its own has ended.
  if (session->standing == net::Standing::node && user_channels_.size() > 0)
    for (const core::ConnectionId user : user_channels_.relayed_over(peer)) forget_session(user);
  forget_session(id);
}

bool Server::unlimited(const core::Identity& who) const {
  return who.owner.uid == Uid{0} || core::is_operator(core_->state(), who);
}

Duration Server::loop_time() {
  timespec t{};
  const int failed = ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  GANTRY_ASSERT(failed == 0, "a thread has a clock");
  return {std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1'000};
}

// Counts one more message of this session. The error is what to answer if it is one too many.
Result<void> Server::admit(rpc::Session& session) {
  const Instant now = clock_.now();
  if (session.identity && session.identity->token_ends && *session.identity->token_ends <= now)
    lose_identity(session, {ErrorCode::unauthenticated, "the token is no longer valid"});
  if (session.identity && !session.registered_key.empty() &&
      core_->user_of_key(session.registered_key) != session.identity->owner.user)
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

void Server::set_standing(rpc::Session& session, net::Standing standing) {
  if (session.standing == standing) return;
  session.standing = standing;
  router_.set_standing(session.peer, standing,
                       session.identity ? fmt::format("uid {}", session.identity->owner.uid.value())
                                        : std::string());
}

void Server::cut_off(rpc::Session& session) {
  session.cut_off = true;
  leaving_.push_back(session.peer);
}

void Server::lose_identity(rpc::Session& session, Error why) {
  session.identity.reset();
  session.registered_key.clear();
  session.refused = std::move(why);
  if (session.counted) limits_.disconnected(*session.counted);
  session.counted.reset();
  set_standing(session, net::Standing::stranger);
}

void Server::establish(rpc::Session& session, rpc::IdentityCheck::Proof proof) {
  session.identity = std::move(proof.identity);
  session.registered_key = std::move(proof.registered_key);
  session.refused.reset();
  session.strange_messages = 0;
  set_standing(session, net::Standing::known);
}

void Server::authenticate(rpc::Session& session, std::uint64_t request, std::string_view body) {
  const auto message = codec::decode<proto::Authenticate>(body);
  if (!message) {
    refuse(session, request, message.error());
    return;
  }
  const std::string network = net::network_of(router_.address_of(session.peer));
  if (!refusals_.may_look(network, clock_.now())) {
    refuse(session, request,
           {ErrorCode::too_many,
            "too many credentials from this address were refused: try again later"});
    return;
  }
  auto proof = identities_.check(*message, session.key, clock_.now());
  if (const auto fault = identities_.new_fault(); !fault.empty())
    log_.write(LogLevel::error, "the keys of oidc_issuer are those from before",
               {{"error", fault}});
  if (!proof) {
    refusals_.refused(network, clock_.now());
    refuse_credential(session, request, *message, proof.error());
    return;
  }
  lose_identity(session, {ErrorCode::unauthenticated, "authenticate first"});
  const Owner& owner = proof->identity.owner;
  if (!unlimited(proof->identity)) {
    Result<void> room = limits_.requested(owner.uid, owner.user, clock_.now());
    if (room) room = limits_.connected(owner.uid, owner.user, sessions_.size() > kMostPeers);
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
  send_to(session, static_cast<std::uint16_t>(proto::number_of<proto::AuthReply>), request,
          codec::encode(reply));
}

void Server::refuse_credential(rpc::Session& session, std::uint64_t request,
                               const proto::Authenticate& message, Error error) {
  ++refused_credentials_;
  const std::string address = router_.address_of(session.peer);
  const std::string network = net::network_of(address);
  if (refused_logs_.size() >= kMostNetworks && !refused_logs_.contains(network))
    refused_logs_.clear();
  log_.write(refused_logs_[network], LogLevel::warning, "refused a credential",
             {{"address", address},
              {"method", enum_name(message.method)},
              {"claims", identities_.claimed(message)},
              {"error", error.message}});
  (void)kept(audit_.refused(
      session, proto::kRowOf<proto::Authenticate>,
      fmt::format("claims={:.64} address={}", identities_.claimed(message), address), error));
  refuse(session, request, error);
  lose_identity(session, std::move(error));
  if (++session.refusals >= kMostRefusals) cut_off(session);
}

std::string Server::metrics_of_sessions() const {
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
      sessions_.size(), channels_.size(), user_channels_.size(), refused_credentials_,
      limits_.refused());
}

}  // namespace gantry::ctld
