#include "noded/net/job_connection.h"

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
#include "common/proto/messages.h"

namespace gantry::node {

namespace {

constexpr std::size_t kKeptRoom = 64u << 10;  // bytes of buffer that are kept while nothing waits

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
  if (rest_waits_) return;  // what has come is handled first
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
  // Every user may connect; whose connections are kept is asked of each.
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
