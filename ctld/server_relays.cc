// What nodes carry for others: requests from inside jobs, and requests of the users of login nodes.
//
// A job's request is believed because the job is placed on the node. A user's is believed from
// login nodes only, over the connection and from the address of the node (rpc/login_nodes.h). The
// word of a node on another machine does not reach beyond ordinary users, so that whoever breaks
// into a login node does not administer the cluster.
#include "common/codec/codec.h"
#include "ctld/core/access/authorise.h"
#include "ctld/rpc/identity.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

// Channels that one message may name; a node sends fewer.
constexpr std::size_t kMostGone = 4'096;

}  // namespace

void Server::relayed(const std::string& node, const proto::NodeRelay& relay) {
  if (relay.type == proto::kRelayClosed) {
    if (const rpc::Session* session = channels_.find_channel(node, relay.channel))
      forget_session(session->id);
    (void)send_relayed(node, {relay.channel, proto::kRelayClosed, 0, {}});
    return;
  }
  std::optional<core::ConnectionId> dropped;
  const Duration began = loop_time();
  rpc::Session& session = channels_.of_channel(node, relay.channel, dropped);
  forget_session(dropped);
  auto who = core_->inside_identity(node, relay.key);
  if (!who) {
    refuse(session, relay.request, who.error());
    return;
  }
  session.identity = std::move(*who);
  session.identity->groups = identities_.groups_of(session.identity->owner, clock_.now());
  limits_.took(session.identity->owner.uid, loop_time() - began);  // finding out who asks
  from_client(session, {proto::kProtocolVersion, relay.type, relay.request}, relay.body);
}

void Server::relayed(const std::string& node, net::PeerId peer, const proto::UserRelay& relay) {
  std::optional<core::ConnectionId> dropped;
  const Duration began = loop_time();
  rpc::Session& session = user_channels_.of_channel(node, relay.channel, dropped);
  session.of_user = true;
  session.peer = peer;
  forget_session(dropped);
  if (const auto believed = believe(session, peer, relay.uid); !believed) {
    if (believed.error().code == ErrorCode::unauthenticated) {
      ++refused_credentials_;
      log_.write(disbelieved_, LogLevel::warning, "did not believe a node",
                 {{"node", node}, {"uid", relay.uid}, {"error", believed.error().message}});
    }
    refuse(session, relay.request, believed.error());
    forget_session(session.id);
    return;
  }
  limits_.took(relay.uid, loop_time() - began);  // finding out who asks
  from_client(session, {proto::kProtocolVersion, relay.type, relay.request}, relay.body);
}

// Gives the session its identity with the first message, and checks it again with each other.
Result<void> Server::believe(rpc::Session& session, net::PeerId peer, Uid uid) {
  ASSIGN(word, login_nodes_.check(session.node, router_.address_of(peer)));
  if (session.identity && session.identity->owner.uid != uid)
    return fail(ErrorCode::unauthenticated, "a connection has one user for as long as it lasts");
  const bool fresh = !session.identity;
  if (fresh) {
    ASSIGN(who, identities_.at_login_node(uid, clock_.now()));
    session.identity = std::move(*who);
  }
  if (unlimited(*session.identity)) {
    if (*word == rpc::Word::of_everybody) return {};
    return fail(ErrorCode::unauthenticated,
                fmt::format("a login node does not speak for {}: prove it yourself",
                            session.identity->owner.user));
  }
  if (!fresh) return {};
  const Owner& owner = session.identity->owner;
  if (auto room = limits_.connected(owner.uid, owner.user); !room) return room;
  session.counted = owner.uid;
  return {};
}

void Server::users_gone(const std::string& node, const proto::UsersGone& gone) {
  if (gone.channels.size() > kMostGone) {
    log_.write(LogLevel::warning, "ignored a message of a node",
               {{"node", node}, {"error", "it names too many connections"}});
    return;
  }
  for (const std::uint64_t channel : gone.channels) {
    if (const rpc::Session* session = user_channels_.find_channel(node, channel))
      forget_session(session->id);
    if (gone.answer) (void)send_relayed(node, {channel, proto::kRelayClosed, 0, {}});
  }
}

// The error invalid_argument means that the reply is too large. If the node cannot be reached, the
// reply is dropped without an error.
Result<void> Server::send_relayed(const std::string& node, const proto::RelayReply& reply) {
  const auto link = links_.find(node);
  if (link == links_.end()) return {};
  const net::HeaderBytes header({proto::kProtocolVersion,
                                 static_cast<std::uint16_t>(proto::number_of<proto::RelayReply>),
                                 0});
  const auto sent = router_.send(link->second.peer, header.view(), codec::encode(reply));
  if (sent || sent.error().code == ErrorCode::invalid_argument) return sent;
  links_.erase(link);
  return {};
}

}  // namespace gantry::ctld
