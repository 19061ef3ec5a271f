#include "common/net/router_queues.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/assert.h"

namespace gantry::net {
namespace {

constexpr std::size_t kOverhead = 160;  // bytes that a message takes besides its content

std::size_t size_of(std::string_view header, std::string_view body) {
  return kOverhead + header.size() + body.size();
}

}  // namespace

Bell::Bell() : socket_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  GANTRY_ASSERT(socket_.fd() >= 0, std::strerror(errno));
}
void Bell::ring() const {
  const std::uint64_t one = 1;
  while (::write(socket_.fd(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}
void Bell::silence() const {
  std::uint64_t rung = 0;
  while (::read(socket_.fd(), &rung, sizeof rung) < 0 && errno == EINTR) {
  }
}

std::string network_of(const std::string& address) {
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &six) != 1)
    return address;
  std::string network;
  for (std::size_t i = 0; i < 8; ++i) network += fmt::format("{:02x}", six.s6_addr[i]);
  return network + "/64";
}

// A bell is rung when its queue was empty. This happens under the mutex under which the queue is
// emptied, so no message is forgotten, and the bell is rung seldom.
void RouterQueues::push(RouterEvent&& event) {
  if (events_.empty()) caller_bell_.ring();
  events_.push_back(std::move(event));
}
void RouterQueues::push(RouterCommand&& command) {
  if (commands_.empty()) thread_bell_.ring();
  commands_.push_back(std::move(command));
}

std::deque<RouterEvent> RouterQueues::take() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return {};
  caller_bell_.silence();
  ++batch_;
  event_bytes_ = 0;
  in_of_.clear();
  for (const PeerId peer : std::exchange(paused_, {}))
    push(RouterCommand{RouterCommand::Kind::resume, peer, {}, {}, {}, {}});
  return std::exchange(events_, {});
}

// Counts bytes that wait to be sent. A peer without an owner counts only in the total.
void RouterQueues::count_out(const Peer& peer, std::size_t add, std::size_t take) {
  out_bytes_ += add;
  out_bytes_ -= take;
  if (peer.owner.empty()) return;
  std::size_t& owners = out_of_[peer.owner];
  owners += add;
  owners -= take;
  if (owners == 0) out_of_.erase(peer.owner);
}

void RouterQueues::set_owner(Peer& peer, std::string owner) {
  count_out(peer, 0, peer.out.bytes);
  peer.owner = std::move(owner);
  count_out(peer, peer.out.bytes, 0);
}

std::size_t RouterQueues::most_unsent(const Peer& peer, std::size_t bytes) const {
  if (peer.standing == Standing::node) return unsent_.node;
  const auto owners = out_of_.find(peer.owner);
  const std::size_t of_owner = owners == out_of_.end() ? 0 : owners->second;
  const bool much = of_owner + bytes > unsent_.owner || out_bytes_ + bytes > unsent_.in_all;
  return much ? unsent_.fair : unsent_.peer;
}

Result<void> RouterQueues::send(PeerId peer, std::string_view header, std::string_view body,
                                std::size_t most_messages) {
  if (header.size() > kMaxFrameBytes || body.size() > kMaxFrameBytes)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("a message of {} bytes; at most {} are sent", body.size(), kMaxFrameBytes));
  const std::size_t bytes = size_of(header, body);
  const std::lock_guard lock(mutex_);
  const auto it = peers_.find(peer);
  if (it == peers_.end())
    return fail(ErrorCode::not_found, "the other side has closed its connection");
  Count& out = it->second.out;
  const std::size_t most = most_unsent(it->second, bytes);
  // One message is always accepted: the largest message that may be sent is smaller than the limit
  // of a peer.
  if (out.messages >= most_messages || (out.messages > 0 && out.bytes + bytes > most))
    return fail(ErrorCode::limit_exceeded, "the other side does not read its messages");
  ++out.messages;
  out.bytes += bytes;
  count_out(it->second, bytes, 0);
  push(RouterCommand{RouterCommand::Kind::send, peer, {}, Bytes(header), Bytes(body), {}});
  return {};
}

void RouterQueues::command(RouterCommand command) {
  const std::lock_guard lock(mutex_);
  const auto it = peers_.find(command.peer);
  if (it == peers_.end()) return;
  if (command.kind == RouterCommand::Kind::standing) {
    it->second.standing = command.standing;
    if (command.standing == Standing::stranger) command.owner = network_of(it->second.address);
    set_owner(it->second, command.owner);
  }
  push(std::move(command));
}

std::string RouterQueues::address_of(PeerId peer) const {
  const std::lock_guard lock(mutex_);
  const auto it = peers_.find(peer);
  return it == peers_.end() ? std::string() : it->second.address;
}

bool RouterQueues::empty() const {
  const std::lock_guard lock(mutex_);
  return events_.empty();
}

void RouterQueues::stop() {
  stopping_ = true;
  thread_bell_.ring();
}

void RouterQueues::add_peer(PeerId peer, const std::string& address) {
  const std::lock_guard lock(mutex_);
  Peer& added = peers_[peer];
  added.address = address;
  added.owner = network_of(address);
}

void RouterQueues::remove_peer(PeerId peer, bool tell) {
  const std::lock_guard lock(mutex_);
  const auto it = peers_.find(peer);
  GANTRY_ASSERT(it != peers_.end(), "a peer that was never added");
  count_out(it->second, 0, it->second.out.bytes);
  peers_.erase(it);
  if (!tell) return;
  RouterEvent event;
  event.message.peer = peer;
  event.closed = true;
  push(std::move(event));
}

bool RouterQueues::deliver(std::vector<Incoming>&& messages) {
  const std::lock_guard lock(mutex_);
  const PeerId from = messages.front().peer;
  Peer& peer = peers_.at(from);
  if (peer.batch != batch_) {
    peer.batch = batch_;
    peer.in = {};
  }
  for (Incoming& message : messages) {
    const std::size_t bytes = size_of(message.header, message.body);
    ++peer.in.messages;
    if (!peer.owner.empty()) ++in_of_[peer.owner];
    peer.in.bytes += bytes;
    event_bytes_ += bytes;
    push(RouterEvent{std::move(message), false});
  }
  const bool enough = peer.in.messages >= kMostWaiting || peer.in.bytes >= kMostWaitingBytes ||
                      (event_bytes_ >= kMostWaitingInAll && peer.standing != Standing::node);
  if (enough) paused_.push_back(from);
  return enough;
}

bool RouterQueues::hold_back(PeerId id) {
  const std::lock_guard lock(mutex_);
  const auto owners = in_of_.find(peers_.at(id).owner);
  if (owners == in_of_.end() || owners->second < kMostWaitingOfOwner) return false;
  paused_.push_back(id);
  return true;
}

std::vector<RouterCommand> RouterQueues::commands() {
  const std::lock_guard lock(mutex_);
  thread_bell_.silence();
  return std::exchange(commands_, {});
}

void RouterQueues::sent(PeerId peer, std::string_view header, std::string_view body) {
  const std::size_t bytes = size_of(header, body);
  const std::lock_guard lock(mutex_);
  Peer& to = peers_.at(peer);
  --to.out.messages;
  to.out.bytes -= bytes;
  count_out(to, 0, bytes);
}

}  // namespace gantry::net
