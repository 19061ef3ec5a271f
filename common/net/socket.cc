#include "common/net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

namespace gantry::net {
namespace {

std::int64_t monotonic_us() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

// Binds `fd` to the address `from`, on a port that the kernel chooses. Returns true on success.
bool bind_to(int fd, const std::string& from) {
  sockaddr_in in = {};
  sockaddr_in6 in6 = {};
  in.sin_family = AF_INET;
  in6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET, from.c_str(), &in.sin_addr) == 1)
    return bind(fd, reinterpret_cast<const sockaddr*>(&in), sizeof in) == 0;
  return inet_pton(AF_INET6, from.c_str(), &in6.sin6_addr) == 1 &&
         bind(fd, reinterpret_cast<const sockaddr*>(&in6), sizeof in6) == 0;
}

Result<Socket> connect_one(const sockaddr* address, socklen_t size, const std::string& shown,
                           const Deadline& deadline, const std::string& from) {
  Socket socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto failed = [&](int error) {
    return fail(ErrorCode::unavailable,
                fmt::format("cannot connect to {}: {}", shown, std::strerror(error)));
  };
  if (socket.fd() < 0) return failed(errno);
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (!from.empty() && !bind_to(socket.fd(), from))
    return fail(ErrorCode::unavailable,
                fmt::format("cannot connect to {} from {}: {}", shown, from, std::strerror(errno)));
  if (connect(socket.fd(), address, size) == 0) return socket;
  // EAGAIN means that a unix socket's queue of connections is full; the caller may try again.
  if (errno != EINPROGRESS && errno != EINTR) return failed(errno);
  if (const auto ready = wait_for(socket.fd(), Wait::write, deadline); !ready)
    return fail(ErrorCode::timed_out, fmt::format("no connection to {} in time", shown));
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return failed(error);
  return socket;
}

Result<Socket> connect_unix(const std::string& path, const Deadline& deadline) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no path for a unix socket: 1 to {} bytes", path,
                            sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  return connect_one(reinterpret_cast<const sockaddr*>(&address), sizeof address, path, deadline,
                     {});
}

}  // namespace

Result<HostPort> split_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  HostPort parts;
  if (colon != std::string_view::npos) {
    parts.host = text.substr(0, colon);
    parts.port = text.substr(colon + 1);
  }
  if (parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']')
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  const bool digits = !parts.port.empty() && parts.port.size() <= 5 &&
                      std::all_of(parts.port.begin(), parts.port.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (parts.host.empty() || !digits)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no address: tcp://HOST:PORT or ipc:///PATH", text));
  return parts;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}
int Socket::release() {
  return std::exchange(fd_, -1);
}

Deadline::Deadline(Duration from_now)
    : at_us_(monotonic_us() + std::clamp<std::int64_t>(from_now.us, 0, hours(24 * 365).us)) {}

int Deadline::left_ms() const {
  const std::int64_t left = at_us_ - monotonic_us();
  return left <= 0 ? 0 : static_cast<int>(std::min<std::int64_t>((left + 999) / 1000, 86'400'000));
}

Result<Socket> connect_to(const std::string& address, const Deadline& deadline,
                          const std::string& from) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kIpc = "ipc://";
  if (address.starts_with(kIpc)) return connect_unix(address.substr(kIpc.size()), deadline);
  const auto parts =
      split_address(std::string_view(address).substr(address.starts_with(kTcp) ? kTcp.size() : 0));
  if (!parts) return tl::unexpected(parts.error());

  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;  // plain numbers need no resolver
  addrinfo* raw = nullptr;
  int error = getaddrinfo(parts->host.c_str(), parts->port.c_str(), &hints, &raw);
  if (error == EAI_NONAME) {
    hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
    error = getaddrinfo(parts->host.c_str(), parts->port.c_str(), &hints, &raw);
  }
  if (error != 0)
    return fail(ErrorCode::unavailable,
                fmt::format("cannot find host \"{}\": {}", parts->host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(raw, &freeaddrinfo);
  Result<Socket> result = fail(ErrorCode::unavailable, "no address");
  for (const addrinfo* a = list.get(); a != nullptr && !result; a = a->ai_next)
    result = connect_one(a->ai_addr, a->ai_addrlen, address, deadline, from);
  return result;
}

Result<void> wait_for(int fd, Wait what, const Deadline& deadline) {
  const short events = what == Wait::read    ? POLLIN
                       : what == Wait::write ? POLLOUT
                                             : POLLIN | POLLOUT;
  pollfd entry = {fd, events, 0};
  while (true) {
    const int left = deadline.left_ms();
    const int n = poll(&entry, 1, left);
    if (n > 0) return {};
    if (n < 0 && errno != EINTR)
      return fail(ErrorCode::io_error, fmt::format("poll: {}", std::strerror(errno)));
    if (n == 0 && left == 0) return fail(ErrorCode::timed_out, "no answer in time");
  }
}

Result<std::size_t> read_some(int fd, char* into, std::size_t most) {
  while (true) {
    const ssize_t n = recv(fd, into, most, MSG_DONTWAIT);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) return fail(ErrorCode::unavailable, "the other side closed the connection");
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    return fail(ErrorCode::unavailable,
                fmt::format("the connection was lost: {}", std::strerror(errno)));
  }
}

Result<std::size_t> write_some(int fd, std::string_view bytes) {
  while (true) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    return fail(ErrorCode::unavailable,
                fmt::format("the connection was lost: {}", std::strerror(errno)));
  }
}

}  // namespace gantry::net
