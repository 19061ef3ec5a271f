#include "common/net/listen.h"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace gantry::net {
namespace {

constexpr std::size_t kSpareFiles = 512;  // open files beside the connections
// Seconds of silence after which TCP checks whether the peer is there
constexpr int kKeepaliveIdle = 60;
constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";

tl::unexpected<Error> cannot(const std::string& endpoint, int error) {
  return fail(ErrorCode::unavailable,
              fmt::format("cannot listen on {}: {}", endpoint, std::strerror(error)));
}

void set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// The address of a peer as numbers: "10.0.0.7", also for ::ffff:10.0.0.7; "" if it is unknown.
struct Numeric {
  std::string host, port;
};
Numeric numeric(const sockaddr_storage& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  std::string_view text(host.data());
  constexpr std::string_view kMapped = "::ffff:";
  if (text.starts_with(kMapped) && text.find('.') != std::string_view::npos)
    text.remove_prefix(kMapped.size());
  return {std::string(text), port.data()};
}

Result<Listening> listen_unix(const std::string& endpoint, int backlog) {
  Listening out;
  out.path = endpoint.substr(kIpc.size());
  out.endpoint = endpoint;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (out.path.empty() || out.path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no path for a unix socket: 1 to {} bytes", out.path,
                            sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, out.path.data(), out.path.size());
  out.socket = Socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(out.path.c_str());
  if (out.socket.fd() < 0 ||
      ::bind(out.socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(out.socket.fd(), backlog) != 0)
    return cannot(endpoint, errno);
  return out;
}

// Listens on one of the addresses of a name.
Result<Listening> listen_tcp(const std::string& endpoint, const addrinfo& a, int backlog) {
  Listening out;
  out.socket = Socket(::socket(a.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = out.socket.fd();
  if (fd < 0) return cannot(endpoint, errno);
  set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (a.ai_family == AF_INET6) set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd, a.ai_addr, a.ai_addrlen) != 0 || ::listen(fd, backlog) != 0)
    return cannot(endpoint, errno);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  const Numeric at = numeric(bound, size);
  const bool six = at.host.find(':') != std::string::npos;
  out.endpoint = fmt::format("tcp://{}{}{}:{}", six ? "[" : "", at.host, six ? "]" : "", at.port);
  return out;
}

}  // namespace

void raise_file_limit(std::size_t connections) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = connections + kSpareFiles;
  if (limit.rlim_cur >= wanted) return;
  rlimit raised = {wanted, std::max(limit.rlim_max, wanted)};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  raised = {std::min(limit.rlim_max, wanted), limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
}

std::size_t file_limit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : kSpareFiles;
}

// The kernel gives the lowest number that is free.
bool leaves_room(int fd) {
  const std::size_t limit = file_limit();
  return static_cast<std::size_t>(fd) + std::min(kSpareFiles, limit / 4) < limit;
}

Result<Listening> listen_at(const std::string& endpoint, int backlog) {
  if (endpoint.starts_with(kIpc)) return listen_unix(endpoint, backlog);
  std::string plain = endpoint.starts_with(kTcp) ? endpoint.substr(kTcp.size()) : endpoint;
  if (plain.ends_with(":*")) plain.replace(plain.size() - 1, 1, "0");
  ASSIGN(parts, split_address(plain));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const char* host = parts->host == "*" ? nullptr : parts->host.c_str();
  if (const int error = ::getaddrinfo(host, parts->port.c_str(), &hints, &raw); error != 0)
    return fail(ErrorCode::unavailable,
                fmt::format("cannot listen on {}: {}", endpoint, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
  Result<Listening> out = fail(ErrorCode::unavailable, "no address");
  for (const addrinfo* a = list.get(); a != nullptr && !out; a = a->ai_next)
    out = listen_tcp(endpoint, *a, backlog);
  return out;
}

Result<Accepted> accept_from(const Listening& listening) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  Accepted out;
  out.socket = Socket(::accept4(listening.socket.fd(), reinterpret_cast<sockaddr*>(&from), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (out.socket.fd() < 0) {
    const bool none_left =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return fail(none_left ? ErrorCode::limit_exceeded : ErrorCode::wrong_state,
                std::strerror(errno));
  }
  if (!leaves_room(out.socket.fd()))
    return fail(ErrorCode::limit_exceeded, "the other descriptors are not for connections");
  if (from.ss_family == AF_UNIX) {
    out.address = "local";
    return out;
  }
  set(out.socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  set(out.socket.fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set(out.socket.fd(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdle);
  out.address = numeric(from, size).host;
  return out;
}

}  // namespace gantry::net
