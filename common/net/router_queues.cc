#include "common/net/router_queues.h"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/assert.h"

namespace gantry::net {
namespace {

constexpr std::size_t kOverhead = 160;  // bytes that a message takes beside what it says

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

// A bell is rung when its queue was empty, under the mutex as the queue is emptied: so it is never
// forgotten, and seldom rung.
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
  for (const PeerId peer : std::exchange(paused_, {}))
    push(RouterCommand{RouterCommand::Kind::resume, peer, {}, {}, {}});
  return std::exchange(events_, {});
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
  std::size_t most = it->second.standing == Standing::node ? kMostUnsentNode : kMostUnsent;
  if (out_bytes_ + bytes > kMostUnsentInAll) most = kFairUnsent;
  // One message is always taken: any that may be sent at all is smaller than what one may hold.
  if (out.messages >= most_messages || (out.messages > 0 && out.bytes + bytes > most))
    return fail(ErrorCode::limit_exceeded, "the other side does not read its messages");
  ++out.messages;
  out.bytes += bytes;
  out_bytes_ += bytes;
  push(RouterCommand{RouterCommand::Kind::send, peer, {}, Bytes(header), Bytes(body)});
  return {};
}

void RouterQueues::command(RouterCommand command) {
  const std::lock_guard lock(mutex_);
  const auto it = peers_.find(command.peer);
  if (it == peers_.end()) return;
  if (command.kind == RouterCommand::Kind::standing) it->second.standing = command.standing;
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
  peers_[peer].address = address;
}

void RouterQueues::remove_peer(PeerId peer, bool tell) {
  const std::lock_guard lock(mutex_);
  const auto it = peers_.find(peer);
  GANTRY_ASSERT(it != peers_.end(), "a peer that was never added");
  out_bytes_ -= it->second.out.bytes;
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
    peer.in.bytes += bytes;
    event_bytes_ += bytes;
    push(RouterEvent{std::move(message), false});
  }
  const bool enough = peer.in.messages >= kMostWaiting || peer.in.bytes >= kMostWaitingBytes ||
                      (event_bytes_ >= kMostWaitingInAll && peer.standing != Standing::node);
  if (enough) paused_.push_back(from);
  return enough;
}

std::vector<RouterCommand> RouterQueues::commands() {
  const std::lock_guard lock(mutex_);
  thread_bell_.silence();
  return std::exchange(commands_, {});
}

void RouterQueues::sent(PeerId peer, std::string_view header, std::string_view body) {
  const std::size_t bytes = size_of(header, body);
  const std::lock_guard lock(mutex_);
  Count& out = peers_.at(peer).out;
  --out.messages;
  out.bytes -= bytes;
  out_bytes_ -= bytes;
}

}  // namespace gantry::net
