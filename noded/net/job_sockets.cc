#include "noded/net/job_sockets.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/codec/codec.h"
#include "common/net/descriptors.h"
#include "common/net/listen.h"
#include "common/proto/message_table.h"
#include "common/proto/messages.h"

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

// If all jobs together exceed the limit, only jobs with more than a fair part are refused.
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

// Tells the controller that the connection has closed, so that it can drop its session. Otherwise
// the controller drops it later by itself.
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

namespace {

constexpr std::size_t kKeptRoom = 64u << 10;  // buffer kept while nothing waits

}  // namespace

JobConnection::JobConnection(loop::Loop& loop, net::Socket socket, proto::AttemptKey key,
                             std::uint64_t channel, JobBudget& budget, Handlers handlers)
    : loop_(loop),
      socket_(std::move(socket)),
      key_(key),
      channel_(channel),
      handlers_(std::move(handlers)),
      budget_(budget) {
  readable_ = loop_.on_readable(socket_.fd(), [this] { on_readable(); });
}

JobConnection::~JobConnection() {
  *self_ = nullptr;
  budget_.held -= counted_.held;
  budget_.unsent -= counted_.unsent;
}

bool JobConnection::count() {
  budget_.held += frames_.held_bytes() - counted_.held;
  budget_.unsent += unsent_.size() - counted_.unsent;
  counted_ = {frames_.held_bytes(), unsent_.size()};
  return budget_.held <= kMostHeldOfJob && budget_.unsent <= kMostUnsentOfJob;
}

void JobConnection::on_readable() {
  if (rest_waits_) return;  // handles the received messages first
  char buffer[65536];
  std::size_t taken = 0;
  bool over = false;
  while (taken < kReadPerTurn) {
    const auto got = net::read_some(socket_.fd(), buffer, sizeof buffer);
    if (!got) over = true;
    if (!got || *got == 0) break;
    frames_.feed({buffer, *got});
    taken += *got;
  }
  take_messages(over);
}

bool JobConnection::has_closed() const {
  pollfd peer{socket_.fd(), POLLRDHUP, 0};
  return ::poll(&peer, 1, 0) > 0;
}

void JobConnection::take_messages(bool over) {
  rest_waits_ = false;
  for (int n = 0; !closing_ && !(over && handlers_.only_while_open); ++n) {
    if (n == kMessagesPerTurn) {
      if (handlers_.only_while_open && has_closed()) return close_soon();
      if (holds_too_much()) return close_soon();
      rest_waits_ = true;
      loop_.post([self = self_, over] {
        if (*self != nullptr) (*self)->take_messages(over);
      });
      return;
    }
    auto message = frames_.next();
    if (!message) {
      refuse(0, message.error().code, message.error().message);
      close_soon();
      return;
    }
    if (!*message) break;
    handlers_.message(*this, std::move(**message));
  }
  if (over || holds_too_much()) close_soon();
}

bool JobConnection::holds_too_much() {
  if (closing_ || count()) return false;
  refuse(0, ErrorCode::limit_exceeded,
         fmt::format("these connections hold more than {} bytes of unfinished messages",
                     kMostHeldOfJob));
  return true;
}

void JobConnection::send(const net::MessageHeader& header, std::string_view body) {
  if (closing_) return;
  net::append_frame(unsent_, header, body);
  flush();
  if (!count() && budget_.unsent > kMostUnsentOfJob) close_soon();
}

void JobConnection::refuse(std::uint64_t request, ErrorCode code, std::string message) {
  const proto::ErrorReply reply{static_cast<std::uint16_t>(code), std::move(message)};
  const auto type = static_cast<std::uint16_t>(proto::number_of<proto::ErrorReply>);
  send({proto::kProtocolVersion, type, request}, codec::encode(reply));
}

bool JobConnection::pass_descriptor(int fd) {
  if (closing_ || !unsent_.empty()) return false;
  return net::pass_descriptors(socket_.fd(), {&fd, 1}, MSG_DONTWAIT);
}

void JobConnection::flush() {
  std::size_t done = 0;
  while (done < unsent_.size()) {
    const auto sent = net::write_some(socket_.fd(), std::string_view(unsent_).substr(done));
    if (!sent) {
      close_soon();
      return;
    }
    if (*sent == 0) break;
    done += *sent;
  }
  unsent_.erase(0, done);
  if (unsent_.empty() && unsent_.capacity() > kKeptRoom) unsent_ = Bytes();
  count();
  if (unsent_.empty())
    writable_.cancel();
  else if (!writable_)
    writable_ = loop_.on_writable(socket_.fd(), [this] { flush(); });
}

// The connection is closed in a turn of its own, because the caller may still be using it.
void JobConnection::close_soon() {
  if (closing_) return;
  closing_ = true;
  readable_.cancel();
  writable_.cancel();
  close_ = loop_.after(Duration{}, [this] {
    const auto closed = handlers_.closed;
    closed(channel_);
  });
}

// The path of a unix socket has at most 107 bytes, and a state directory's path is easily longer.
// So the name is given relative to the directory's descriptor.
Result<net::Socket> listen_in(int directory, const char* name, const char* whose) {
  const auto failed = [&](const char* what) {
    return fail(ErrorCode::io_error,
                fmt::format("{} for {}: {}", what, whose, std::strerror(errno)));
  };
  net::Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0) return failed("socket");
  ::unlinkat(directory, name, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("bind");
  // Every user may connect; the caller checks each connection's user.
  if (::fchmodat(directory, name, 0666, 0) != 0) return failed("chmod");
  if (::listen(socket.fd(), 1024) != 0) return failed("listen");
  return socket;
}

std::optional<UnixPeer> peer_of(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return std::nullopt;
  return UnixPeer{Uid{who.uid}, who.pid};
}

Result<net::Socket> open_directory(const std::string& path) {
  net::Socket out(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (out.fd() < 0)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  return out;
}

}  // namespace gantry::node
