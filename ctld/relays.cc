// Nodes relay requests of others: of jobs, and of the users of login nodes.
//
// A job's request is accepted because the job is placed on the node. A user's request is accepted
// only from login nodes, over the connection and from the address of the node (rpc/login_nodes.h).
// A login node on another machine can vouch only for ordinary users, so that whoever breaks into it
// does not administer the cluster.
#include "ctld/relays.h"

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/message_table.h"
#include "common/proto/node_relay.h"
#include "common/proto/session.h"
#include "ctld/core/access/authorise.h"

namespace gantry::ctld {
namespace {

// Channels that one message may name; a node sends fewer.
constexpr std::size_t kMostGone = 4'096;

}  // namespace

void Relays::look_up_login_nodes() {
  std::vector<std::string> problems;
  login_nodes_ = rpc::LoginNodes::from(shell_.config, problems);
  for (const std::string& problem : problems) shell_.log.write(LogLevel::warning, problem);
}

bool Relays::carried(const std::string& node, std::uint16_t type, const net::Incoming& incoming) {
  const auto take = [&]<class T>(std::type_identity<T>, const auto& handle) {
    if (type != static_cast<std::uint16_t>(proto::number_of<T>)) return false;
    if (const auto message = codec::decode<T>(incoming.body))
      handle(*message);
    else
      shell_.log.write(LogLevel::warning, "ignored a relay that cannot be read",
                       {{"node", node}, {"error", message.error().message}});
    return true;
  };
  return take(std::type_identity<proto::NodeRelay>{},
              [&](const proto::NodeRelay& m) { of_job(node, m); }) ||
         take(std::type_identity<proto::UserRelay>{},
              [&](const proto::UserRelay& m) { of_user(node, incoming.peer, m); }) ||
         take(std::type_identity<proto::UsersGone>{},
              [&](const proto::UsersGone& m) { users_gone(node, m); });
}

void Relays::of_job(const std::string& node, const proto::NodeRelay& relay) {
  if (relay.type == proto::kRelayClosed) {
    connections_.forget_job(node, relay.channel);
    (void)connections_.send_relayed(node, {relay.channel, proto::kRelayClosed, 0, {}});
    return;
  }
  const Duration began = Connections::loop_time();
  rpc::Session& session = connections_.of_job(node, relay.channel);
  auto who = shell_.core.inside_identity(node, relay.key);
  if (!who) return connections_.refuse(session, relay.request, who.error());
  session.identity = std::move(*who);
  const Owner& owner = session.identity->owner;
  session.identity->groups = connections_.identities().groups_of(owner, shell_.clock.now());
  connections_.took(owner.uid,
                    Connections::loop_time() - began);  // the time for finding out who asks
  take_(session, {proto::kProtocolVersion, relay.type, relay.request}, relay.body);
}

void Relays::of_user(const std::string& node, net::PeerId peer, const proto::UserRelay& relay) {
  const Duration began = Connections::loop_time();
  rpc::Session& session = connections_.of_user(node, relay.channel, peer);
  if (const auto believed = believe(session, peer, relay.uid); !believed) {
    if (believed.error().code == ErrorCode::unauthenticated) {
      connections_.count_refused();
      shell_.log.write(disbelieved_, LogLevel::warning, "did not believe a node",
                       {{"node", node}, {"uid", relay.uid}, {"error", believed.error().message}});
    }
    connections_.refuse(session, relay.request, believed.error());
    connections_.forget(session.id);
    return;
  }
  connections_.took(relay.uid,
                    Connections::loop_time() - began);  // the time for finding out who asks
  take_(session, {proto::kProtocolVersion, relay.type, relay.request}, relay.body);
}

// Gives the session its identity with the first message, and checks it again with each later
// message.
Result<void> Relays::believe(rpc::Session& session, net::PeerId peer, Uid uid) {
  ASSIGN(word, login_nodes_.check(session.node, connections_.router().address_of(peer)));
  if (session.identity && session.identity->owner.uid != uid)
    return fail(ErrorCode::unauthenticated, "a connection has one user for as long as it lasts");
  const bool fresh = !session.identity;
  if (fresh) {
    ASSIGN(who, connections_.identities().at_login_node(uid, shell_.clock.now()));
    session.identity = std::move(*who);
  }
  if (connections_.unlimited(*session.identity)) {
    if (*word == rpc::Word::of_everybody) return {};
    return fail(ErrorCode::unauthenticated,
                fmt::format("a login node does not speak for {}: prove it yourself",
                            session.identity->owner.user));
  }
  return fresh ? connections_.count(session) : Result<void>{};
}

void Relays::users_gone(const std::string& node, const proto::UsersGone& gone) {
  if (gone.channels.size() > kMostGone) {
    shell_.log.write(LogLevel::warning, "ignored a message of a node",
                     {{"node", node}, {"error", "it names too many connections"}});
    return;
  }
  for (const std::uint64_t channel : gone.channels) {
    connections_.forget_user(node, channel);
    if (gone.answer) (void)connections_.send_relayed(node, {channel, proto::kRelayClosed, 0, {}});
  }
}

}  // namespace gantry::ctld
