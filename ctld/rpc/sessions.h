// Who is on the other end of each connection: peers of the router, and channels that a node relays
// from inside a job. ZeroMQ does not say when a peer leaves, so idle sessions are dropped when
// there are too many; their next message simply has to authenticate again.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/net/keys.h"
#include "common/net/router.h"
#include "ctld/core/core.h"

namespace gantry::rpc {

inline constexpr std::size_t kMaxSessions = 65'536;

struct Session {
  core::ConnectionId id;
  net::PeerId peer;  // of the router; of the node's link when relayed
  net::PublicKey key;
  std::string z85;                         // the key as text, made once
  std::optional<core::Identity> identity;  // set by Authenticate
  std::string refused;                     // why the last Authenticate failed
  std::string node;                        // relayed: by which node
  std::uint64_t channel = 0;               // relayed: the node's number for it
  [[nodiscard]] bool relayed() const { return !node.empty(); }
};

class SessionTable {
 public:
  explicit SessionTable(std::size_t limit = kMaxSessions) : limit_(limit) {}

  // The session of a peer or relayed channel, made on first sight; the reference holds until the
  // next call. `dropped` receives the id of a session that had to make room.
  Session& of_peer(const net::PeerId& peer, const net::PublicKey& key,
                   std::optional<core::ConnectionId>& dropped);
  Session& of_channel(const std::string& node, std::uint64_t channel,
                      std::optional<core::ConnectionId>& dropped);
  Session* find(core::ConnectionId id);
  void drop(core::ConnectionId id);
  [[nodiscard]] std::size_t size() const { return by_id_.size(); }

 private:
  using Order = std::list<Session>;  // least recently used first
  Session& touch(const std::string& name, std::optional<core::ConnectionId>& dropped);
  std::size_t limit_;
  std::uint64_t next_id_ = 1;
  Order order_;
  std::unordered_map<std::string, Order::iterator> by_name_;
  std::unordered_map<core::ConnectionId, std::string> by_id_;
};

}  // namespace gantry::rpc
