// A list in the order of last use, with an index by name (peer or channel) and one by id.
#include "ctld/rpc/sessions.h"

#include "common/assert.h"
#include "ctld/core/request.h"

namespace gantry::rpc {
namespace {

std::string name_of(net::PeerId peer) {
  return "p" + std::to_string(static_cast<std::uint64_t>(peer));
}
std::string name_of(const std::string& node, std::uint64_t channel) {
  return "n" + node + "/" + std::to_string(channel);
}

}  // namespace

Session& SessionTable::touch(const std::string& name, std::optional<core::ConnectionId>& dropped) {
  if (const auto it = by_name_.find(name); it != by_name_.end()) {
    order_.splice(order_.end(), order_, it->second);
    return *it->second;
  }
  if (order_.size() >= limit_) dropped = order_.front().id;
  order_.emplace_back().id = core::ConnectionId(next_id_++);
  by_name_.emplace(name, std::prev(order_.end()));
  by_id_.emplace(order_.back().id, name);
  return order_.back();
}

Session& SessionTable::of_peer(net::PeerId peer, const net::PublicKey& key,
                               std::optional<core::ConnectionId>& dropped) {
  Session& session = touch(name_of(peer), dropped);
  if (session.z85.empty()) {
    session.peer = peer;
    session.key = key;
    session.z85 = net::to_z85(key);
  }
  GANTRY_ASSERT(session.key == key, "a connection has one key for as long as it lasts");
  return session;
}

Session& SessionTable::of_channel(const std::string& node, std::uint64_t channel,
                                  std::optional<core::ConnectionId>& dropped) {
  Session& session = touch(name_of(node, channel), dropped);
  session.node = node;
  session.channel = channel;
  return session;
}

Session* SessionTable::find_name(const std::string& name) {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &*it->second;
}

Session* SessionTable::find_peer(net::PeerId peer) {
  return find_name(name_of(peer));
}

Session* SessionTable::find_channel(const std::string& node, std::uint64_t channel) {
  return find_name(name_of(node, channel));
}

std::vector<core::ConnectionId> SessionTable::relayed_over(net::PeerId peer) const {
  std::vector<core::ConnectionId> out;
  for (const Session& session : order_)
    if (session.relayed() && session.peer == peer) out.push_back(session.id);
  return out;
}

Session* SessionTable::find(core::ConnectionId id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return nullptr;
  const auto entry = by_name_.find(it->second);
  GANTRY_ASSERT(entry != by_name_.end(), "a session has an id and no name");
  return &*entry->second;
}

void SessionTable::drop(core::ConnectionId id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return;
  const auto entry = by_name_.find(it->second);
  GANTRY_ASSERT(entry != by_name_.end(), "a session has an id and no name");
  order_.erase(entry->second);
  by_name_.erase(entry);
  by_id_.erase(it);
}

}  // namespace gantry::rpc
