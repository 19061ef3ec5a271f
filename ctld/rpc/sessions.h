// Sessions: who is at the other end of each connection. A connection is a peer of the router, a
// channel that a node relays from inside a job, or one that a login node relays for a user of its
// machine.
//
// A session is a connection together with the key that it has proved. It ends with the connection:
// its owner removes it, and no later connection gets its number. If there are still too many
// sessions, the ones idle longest are removed; their next message has to authenticate again. Peers,
// channels of jobs and channels of users have a table each, so that sessions of jobs cannot
// displace those of clients.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/net/keys.h"
#include "common/net/router.h"
#include "common/proto/message_table.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"

namespace gantry::rpc {

inline constexpr std::size_t kMaxSessions = 65'536;

struct Session {
  core::ConnectionId id;
  net::PeerId peer{};  // peer of the router; for a user, the node's; unused for jobs
  net::PublicKey key;
  std::string z85;                                   // the key as text, made once
  net::Standing standing = net::Standing::stranger;  // what the router knows about the peer
  std::optional<core::Identity> identity;            // set by Authenticate
  std::string registered_key;          // hex: the key that proved the identity; "" = none did
  std::optional<Uid> counted;          // set if it is counted among the connections of this user
  std::optional<Error> refused;        // why it has no identity, if the peer was told that
  std::uint32_t strange_messages = 0;  // messages that came before it had an identity
  std::uint32_t refusals = 0;          // refused credentials
  bool cut_off = false;                // its further messages are ignored
  std::string node;                    // if relayed: the node that relays it
  std::uint64_t channel = 0;           // if relayed: the node's number of the connection
  bool of_user = false;  // if relayed: true for a user of the node's machine, false for a job
  [[nodiscard]] bool relayed() const { return !node.empty(); }
  // Connections of nodes are recognised before this (Server::receive_one).
  [[nodiscard]] proto::Sender sender() const {
    if (relayed() && !of_user) return proto::Sender::job;
    return identity ? proto::Sender::client : proto::Sender::stranger;
  }
};

class SessionTable {
 public:
  // Sessions are numbered from `first` on. The tables of one core begin far apart, so that their
  // numbers never overlap.
  explicit SessionTable(std::uint64_t first, std::size_t limit = kMaxSessions)
      : limit_(limit), next_id_(first) {}

  // The session of a peer or relayed channel; it is created when it is first seen. The reference is
  // valid until the next call. `dropped` gets the id of a session that was removed to make room;
  // the caller has to drop it.
  Session& of_peer(net::PeerId peer, const net::PublicKey& key,
                   std::optional<core::ConnectionId>& dropped);
  Session& of_channel(const std::string& node, std::uint64_t channel,
                      std::optional<core::ConnectionId>& dropped);
  Session* find(core::ConnectionId id);
  Session* find_peer(net::PeerId peer);
  Session* find_channel(const std::string& node, std::uint64_t channel);
  // The sessions that a node relays over this connection of its own.
  [[nodiscard]] std::vector<core::ConnectionId> relayed_over(net::PeerId peer) const;
  void drop(core::ConnectionId id);
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }

 private:
  using Order = std::list<Session>;  // least recently used first
  Session& touch(const std::string& name, std::optional<core::ConnectionId>& dropped);
  Session* find_name(const std::string& name);
  std::size_t limit_;
  std::uint64_t next_id_;
  Order order_;
  std::unordered_map<std::string, Order::iterator> by_name_;
  std::unordered_map<core::ConnectionId, std::string> by_id_;
};

}  // namespace gantry::rpc
