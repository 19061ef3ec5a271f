#include "noded/net/user_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "common/codec/codec.h"
#include "common/net/listen.h"
#include "common/proto/message_table.h"
#include "noded/net/job_sockets.h"

namespace gantry::node {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr Duration kLateGreeting =
    milliseconds(500);  // clients wait longer than this, see cli/session.cc
constexpr Duration kTellGone = milliseconds(20);
constexpr std::size_t kMostGone = 1'024;  // closed connections reported in one message

constexpr auto kHello = static_cast<std::uint16_t>(proto::MessageType::SocketHello);

Bytes error_frame(const Error& error) {
  Bytes out;
  net::append_frame(
      out, {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::MessageType::ErrorReply), 0},
      codec::encode(proto::ErrorReply{static_cast<std::uint16_t>(error.code), error.message}));
  return out;
}

// Whether a process is in the cgroup `root` of jobs, in any hierarchy. A process that cannot be
// examined counts as one of a job.
bool is_of_job(pid_t pid, const std::string& root) {
  if (pid <= 0) return true;
  const std::string path = fmt::format("/proc/{}/cgroup", pid);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (!file) return true;
  std::string text(16 << 10, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text.find("/" + root + "/") != std::string::npos;
}

}  // namespace

UserSocket::UserSocket(loop::Loop& loop, const Logger& log, Options options, Hooks hooks)
    : loop_(loop),
      log_(log),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      next_channel_(options_.first_channel | kUserChannel) {}

UserSocket::~UserSocket() = default;

Result<void> UserSocket::open(const std::string& directory) {
  ASSIGN(opened, open_directory(directory));
  ASSIGN(socket, listen_in(opened->fd(), kUserSocketName, "the users' socket"));
  listener_ = std::move(*socket);
  accept_ = loop_.on_readable(listener_.fd(), [this] { accept(); });
  return {};
}

void UserSocket::accept() {
  for (int n = 0; n < kAcceptsPerTurn; ++n) {
    net::Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.fd() < 0) return;
    if (!net::leaves_room(socket.fd())) continue;
    if (const auto uid = may_connect(socket.fd())) {
      add(std::move(socket), *uid);
      continue;
    } else {
      log_.write(refused_, LogLevel::warning, "refused a connection to the users' socket",
                 {{"why", uid.error().message}});
      (void)net::write_some(socket.fd(), error_frame(uid.error()));
    }
  }
}

Result<Uid> UserSocket::may_connect(int fd) {
  const auto peer = peer_of(fd);
  if (!peer) return fail(ErrorCode::unauthenticated, "the kernel does not say who connects");
  if (is_of_job(peer->pid, options_.cgroup_root))
    return fail(ErrorCode::unauthenticated,
                fmt::format("process {} of uid {} may be a job's: jobs ask by their own socket",
                            peer->pid, peer->uid.value()));
  const auto user = users_.find(peer->uid);
  if (open_.size() >= kMostConnectionsInAll ||
      (user != users_.end() && user->second.connections >= kMostConnectionsOfUser))
    return fail(ErrorCode::too_many,
                fmt::format("uid {} or all users have too many connections to this node's socket: "
                            "try again later",
                            peer->uid.value()));
  return peer->uid;
}

void UserSocket::add(net::Socket socket, Uid uid) {
  const std::uint64_t channel = next_channel_++;
  User& user = users_[uid];
  ++user.connections;
  Open& open = open_[channel];
  open.uid = uid;
  JobConnection::Handlers handlers;
  handlers.message = [this, &open](JobConnection&, net::StreamMessage&& m) {
    handle(open, std::move(m));
  };
  handlers.closed = [this](std::uint64_t which) { closed(which); };
  // A client that has given up waiting connects in another way, so its request is not relayed.
  handlers.only_while_open = true;
  open.connection = std::make_unique<JobConnection>(loop_, std::move(socket), proto::AttemptKey{},
                                                    channel, user.budget, std::move(handlers));
}

void UserSocket::closed(std::uint64_t channel) {
  const auto it = open_.find(channel);
  if (it == open_.end()) return;
  const Open& open = it->second;
  const Uid uid = open.uid;
  if (open.relayed) {
    (open.waits == 0 ? gone_ : abandoned_).push_back(channel);
    if (!tell_) tell_ = loop_.after(kTellGone, [this] { tell_gone(); });
  }
  open_.erase(it);
  --users_.at(uid).connections;
  forget_if_idle(uid);
}

void UserSocket::forget_if_idle(Uid uid) {
  const auto it = users_.find(uid);
  if (it != users_.end() && it->second.connections == 0 && it->second.unanswered == 0)
    users_.erase(it);
}

void UserSocket::tell_gone() {
  tell_ = {};
  const auto tell = [&](std::vector<std::uint64_t>& all, bool answer) {
    for (std::size_t i = 0; i < all.size(); i += kMostGone) {
      const auto end =
          all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + kMostGone));
      (void)hooks_.gone({{all.begin() + static_cast<std::ptrdiff_t>(i), end}, answer});
    }
    all.clear();
  };
  tell(gone_, false);
  tell(abandoned_, true);
}

void UserSocket::greet(Open& from, const net::StreamMessage& message) {
  const auto hello = codec::decode<proto::SocketHello>(message.body);
  const auto request = message.header.request;
  if (!hello) return from.connection->refuse(request, hello.error().code, hello.error().message);
  if (hello->controller != options_.controller)
    return from.connection->refuse(request, ErrorCode::wrong_state,
                                   "this node belongs to another controller");
  from.greeted = true;
  greetings_.emplace_back(from.connection->channel(), request);
  if (!greet_) greet_ = loop_.after(kLateGreeting, [this] { tell_late_greetings(); });
}

// Tells clients whose answers take long that the daemon is alive.
void UserSocket::tell_late_greetings() {
  greet_ = {};
  for (const auto& [channel, request] : std::exchange(greetings_, {})) {
    const auto it = open_.find(channel);
    if (it == open_.end() || it->second.answered) continue;
    it->second.answered = true;
    it->second.connection->send(
        {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::MessageType::Ok), request},
        codec::encode(proto::Ok{}));
  }
}

Result<void> UserSocket::check(const Open& from, const net::StreamMessage& message) const {
  const net::MessageHeader& header = message.header;
  if (header.protocol < proto::kOldestProtocol || header.protocol > proto::kProtocolVersion)
    return fail(ErrorCode::version_mismatch, fmt::format("this node speaks protocol {}, not {}",
                                                         proto::kProtocolVersion, header.protocol));
  if (header.type == kHello) return {};
  if (!from.greeted) return fail(ErrorCode::unauthenticated, "say first which controller is meant");
  if (auto sent = proto::check_sender(header.type, proto::Sender::client, proto::Place::controller);
      !sent)
    return sent;
  const auto row = proto::find_message(header.type);
  if (row->taker == proto::Taker::sessions || proto::needs_credential(*row))
    return fail(ErrorCode::unauthenticated,
                fmt::format("{} needs a credential: it is not sent through a login node's socket",
                            row->name));
  if (unanswered_.contains({from.connection->channel(), header.request}))
    return fail(ErrorCode::invalid_argument,
                fmt::format("request {} of this connection has not been answered", header.request));
  if (!has_room(users_.at(from.uid), message.body.size()))
    return fail(ErrorCode::too_many,
                "too many requests of users wait for the controller: try again later");
  return {};
}

// If all users together exceed the limit, only users with more than a fair part are refused.
bool UserSocket::has_room(const User& user, std::size_t bytes) const {
  const std::size_t own = user.unanswered_bytes + bytes;
  if (user.unanswered >= kMostUnanswered || own > kMostUnansweredBytes) return false;
  if (unanswered_.size() >= kMostUnansweredOfUsers && user.unanswered >= kFairUnansweredOfUser)
    return false;
  return unanswered_bytes_ + bytes <= kMostUnansweredInAll || own <= kFairUnanswered;
}

void UserSocket::handle(Open& from, net::StreamMessage&& message) {
  const net::MessageHeader header = message.header;
  if (const auto good = check(from, message); !good) {
    from.answered = true;
    return from.connection->refuse(header.request, good.error().code, good.error().message);
  }
  if (header.type == kHello) return greet(from, message);
  const std::size_t bytes = message.body.size();
  proto::UserRelay relay;
  relay.uid = from.uid;
  relay.channel = from.connection->channel();
  relay.type = header.type;
  relay.request = header.request;
  relay.body = std::move(message.body);
  if (!hooks_.relay(relay)) {
    from.answered = true;
    return from.connection->refuse(header.request, ErrorCode::unavailable,
                                   "this node has no connection to the controller now");
  }
  from.relayed = true;
  ++from.waits;
  unanswered_.emplace(std::pair(relay.channel, header.request), Unanswered{from.uid, bytes});
  unanswered_bytes_ += bytes;
  User& user = users_.at(from.uid);
  ++user.unanswered;
  user.unanswered_bytes += bytes;
}

UserSocket::AllUnanswered::iterator UserSocket::settle(AllUnanswered::iterator it) {
  const auto [uid, bytes] = it->second;
  if (const auto open = open_.find(it->first.first); open != open_.end()) --open->second.waits;
  unanswered_bytes_ -= bytes;
  User& user = users_.at(uid);
  --user.unanswered;
  user.unanswered_bytes -= bytes;
  const auto next = unanswered_.erase(it);
  forget_if_idle(uid);
  return next;
}

void UserSocket::reply(const proto::RelayReply& reply) {
  if (reply.type == proto::kRelayClosed) {
    for (auto it = unanswered_.lower_bound({reply.channel, 0});
         it != unanswered_.end() && it->first.first == reply.channel;)
      it = settle(it);
    return;
  }
  if (const auto it = unanswered_.find({reply.channel, reply.request}); it != unanswered_.end())
    settle(it);
  const auto open = open_.find(reply.channel);
  if (open == open_.end()) return;
  open->second.answered = true;
  open->second.connection->send({proto::kProtocolVersion, reply.type, reply.request}, reply.body);
}

void UserSocket::link_is_lost() {
  tell_ = {};
  gone_.clear();
  abandoned_.clear();
  unanswered_.clear();
  unanswered_bytes_ = 0;
  open_.clear();
  users_.clear();
}

}  // namespace gantry::node
