#include "noded/net/job_sockets.h"

#include <sys/socket.h>
#include <unistd.h>

#include "common/net/listen.h"
#include "common/proto/message_table.h"
#include "noded/net/job_connection.h"

namespace gantry::node {

struct JobSockets::Listener {
  proto::AttemptKey key;
  Uid owner{};
  net::Socket socket;
  net::Socket directory;  // kept to remove the socket's name again
  std::size_t connections = 0;
  JobBudget budget;            // shared by its connections
  std::size_t unanswered = 0;  // requests that the controller has not answered
  std::size_t unanswered_bytes = 0;
  loop::Watch watch;
};

JobSockets::JobSockets(loop::Loop& loop, const Logger& log, std::uint64_t first_channel,
                       Hooks hooks)
    : loop_(loop), log_(log), hooks_(std::move(hooks)), next_channel_(first_channel) {}

JobSockets::~JobSockets() = default;

Result<void> JobSockets::open(const proto::AttemptKey& key, Uid owner,
                              const std::string& directory) {
  auto listener = std::make_unique<Listener>();
  listener->key = key;
  listener->owner = owner;
  ASSIGN(opened, open_directory(directory));
  listener->directory = std::move(*opened);
  ASSIGN(socket, listen_in(listener->directory.fd(), kJobSocketName, "a job's socket"));
  listener->socket = std::move(*socket);
  Listener& kept = *listener;
  listeners_[key] = std::move(listener);
  kept.watch = loop_.on_readable(kept.socket.fd(), [this, &kept] { accept(kept); });
  return {};
}

void JobSockets::close(const proto::AttemptKey& key) {
  const auto it = listeners_.find(key);
  if (it == listeners_.end()) return;
  ::unlinkat(it->second->directory.fd(), kJobSocketName, 0);
  std::erase_if(connections_, [&](const auto& entry) {
    if (entry.second->key() != key) return false;
    tell_closed(key, entry.first);
    return true;
  });
  listeners_.erase(it);
}

void JobSockets::accept(Listener& listener) {
  for (int n = 0; n < 16; ++n) {
    net::Socket socket(
        ::accept4(listener.socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.fd() < 0) return;
    if (!net::leaves_room(socket.fd())) continue;
    const auto peer = peer_of(socket.fd());
    if (!peer || peer->uid != listener.owner) {
      log_.warning("refused a connection to a job's socket by another user",
                   {{"job", listener.key.job}});
      continue;
    }
    if (listener.connections >= kMaxConnections) continue;
    ++listener.connections;
    const std::uint64_t channel = next_channel_++;
    JobConnection::Handlers handlers;
    handlers.message = [this](JobConnection& c, net::StreamMessage&& m) {
      handle(c, std::move(m));
    };
    handlers.closed = [this](std::uint64_t which) {
      const auto it = connections_.find(which);
      if (it == connections_.end()) return;
      const auto owner = listeners_.find(it->second->key());
      if (owner != listeners_.end()) --owner->second->connections;
      tell_closed(it->second->key(), which);
      connections_.erase(it);
    };
    connections_[channel] = std::make_unique<JobConnection>(
        loop_, std::move(socket), listener.key, channel, listener.budget, std::move(handlers));
  }
}

void JobSockets::handle(JobConnection& connection, net::StreamMessage&& message) {
  if (hooks_.local && hooks_.local(connection, message)) return;
  const auto request = message.header.request;
  if (message.header.protocol < proto::kOldestProtocol ||
      message.header.protocol > proto::kProtocolVersion) {
    connection.refuse(request, ErrorCode::version_mismatch,
                      fmt::format("this node speaks protocol {}, not {}", proto::kProtocolVersion,
                                  message.header.protocol));
    return;
  }
  if (const auto sent =
          proto::check_sender(message.header.type, proto::Sender::job, proto::Place::controller);
      !sent) {
    connection.refuse(request, sent.error().code, sent.error().message);
    return;
  }
  const auto listener = listeners_.find(connection.key());
  if (listener == listeners_.end()) return;  // the job has ended
  if (unanswered_.contains({connection.channel(), request})) {
    connection.refuse(request, ErrorCode::invalid_argument,
                      fmt::format("request {} of this connection has not been answered", request));
    return;
  }
  if (!has_room(*listener->second, message.body.size())) {
    connection.refuse(request, ErrorCode::too_many,
                      "too many requests of jobs wait for the controller: try again later");
    return;
  }
  if (!relay(connection, std::move(message)))
    connection.refuse(request, ErrorCode::unavailable,
                      "this node has no connection to the controller now");
}

// If all jobs together have too much, only jobs that have more than a fair part are refused.
bool JobSockets::has_room(const Listener& listener, std::size_t bytes) const {
  const std::size_t own = listener.unanswered_bytes + bytes;
  if (listener.unanswered >= kMostUnanswered || own > kMostUnansweredBytes) return false;
  return unanswered_bytes_ + bytes <= kMostUnansweredInAll || own <= kFairUnanswered;
}

bool JobSockets::relay(JobConnection& connection, net::StreamMessage&& message) {
  const std::size_t bytes = message.body.size();
  proto::NodeRelay relay;
  relay.key = connection.key();
  relay.channel = connection.channel();
  relay.type = message.header.type;
  relay.request = message.header.request;
  relay.body = std::move(message.body);
  if (!hooks_.relay(std::move(relay))) return false;
  relayed_.insert(connection.channel());
  Listener& listener = *listeners_.at(connection.key());
  unanswered_.emplace(std::pair(connection.channel(), message.header.request),
                      Unanswered{connection.key(), bytes});
  unanswered_bytes_ += bytes;
  listener.unanswered_bytes += bytes;
  ++listener.unanswered;
  return true;
}

// Tells the controller that the connection has closed, so that it need not keep what it knows of
// it. Without this the controller forgets it later by itself.
void JobSockets::tell_closed(const proto::AttemptKey& key, std::uint64_t channel) {
  if (relayed_.erase(channel) == 0) return;
  proto::NodeRelay relay;
  relay.key = key;
  relay.channel = channel;
  relay.type = proto::kRelayClosed;
  (void)hooks_.relay(std::move(relay));
}

void JobSockets::link_is_new() {
  unanswered_.clear();
  unanswered_bytes_ = 0;
  for (auto& [key, listener] : listeners_) {
    listener->unanswered = 0;
    listener->unanswered_bytes = 0;
  }
}

JobSockets::AllUnanswered::iterator JobSockets::settle(AllUnanswered::iterator it) {
  unanswered_bytes_ -= it->second.bytes;
  if (const auto owner = listeners_.find(it->second.key); owner != listeners_.end()) {
    --owner->second->unanswered;
    owner->second->unanswered_bytes -= it->second.bytes;
  }
  return unanswered_.erase(it);
}

void JobSockets::reply(const proto::RelayReply& reply) {
  if (reply.type == proto::kRelayClosed) {
    for (auto it = unanswered_.lower_bound({reply.channel, 0});
         it != unanswered_.end() && it->first.first == reply.channel;)
      it = settle(it);
    return;
  }
  if (const auto it = unanswered_.find({reply.channel, reply.request}); it != unanswered_.end())
    settle(it);
  if (JobConnection* connection = find(reply.channel))
    connection->send({proto::kProtocolVersion, reply.type, reply.request}, reply.body);
}

JobConnection* JobSockets::find(std::uint64_t channel) {
  const auto it = connections_.find(channel);
  return it == connections_.end() ? nullptr : it->second.get();
}

}  // namespace gantry::node
