#include "common/http/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/core.h>

namespace gantry::http {
namespace {

constexpr int kBacklog = 64;

int left_ms(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

bool wait_for(int fd, short events, Deadline deadline) {
  pollfd one{fd, events, 0};
  while (true) {
    const int n = ::poll(&one, 1, left_ms(deadline));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
Result<Addresses> resolve(const std::string& host, std::uint16_t port, bool passive) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int rc = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0)
    return fail(ErrorCode::unavailable, fmt::format("address {}: {}", host, ::gai_strerror(rc)));
  return Addresses(found, &::freeaddrinfo);
}

tl::unexpected<Error> failed(std::string_view what, const std::string& host, std::uint16_t port) {
  return fail(ErrorCode::unavailable,
              fmt::format("{} {}:{}: {}", what, host, port, std::strerror(errno)));
}

}  // namespace

Result<Fd> listen_on(const std::string& host, std::uint16_t port) {
  ASSIGN(addresses, resolve(host, port, true));
  const addrinfo* a = addresses->get();
  Fd fd(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), a->ai_addr, a->ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0)
    return failed("cannot listen on", host, port);
  return fd;
}

std::uint16_t port_of(const Fd& listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, 16> port{};
  if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, nullptr, 0, port.data(),
                    port.size(), NI_NUMERICSERV) != 0)
    return 0;
  return static_cast<std::uint16_t>(std::stoi(port.data()));
}

Result<Fd> connect_to(const std::string& host, std::uint16_t port, Deadline deadline) {
  ASSIGN(addresses, resolve(host, port, false));
  const addrinfo* a = addresses->get();
  Fd fd(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed("cannot connect to", host, port);
  if (::connect(fd.get(), a->ai_addr, a->ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return failed("cannot connect to", host, port);
  if (!wait_for(fd.get(), POLLOUT, deadline))
    return fail(ErrorCode::timed_out, fmt::format("{}:{} does not answer", host, port));
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  if (error != 0) return failed("cannot connect to", host, port);
  return fd;
}

bool wait_readable(const Fd& fd, int other, Deadline deadline) {
  std::array<pollfd, 2> both{{{fd.get(), POLLIN, 0}, {other, POLLIN, 0}}};
  const nfds_t count = other >= 0 ? 2 : 1;
  while (true) {
    const int n = ::poll(both.data(), count, left_ms(deadline));
    if (n > 0) return both[1].revents == 0 && both[0].revents != 0;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool read_some(const Fd& fd, std::string& out, Deadline deadline) {
  std::array<char, 16 * 1024> buffer{};
  while (true) {
    if (!wait_for(fd.get(), POLLIN, deadline)) return false;
    const ssize_t n = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (n > 0) {
      out.append(buffer.data(), static_cast<std::size_t>(n));
      return true;
    }
    if (n == 0 || (errno != EINTR && errno != EAGAIN)) return false;
  }
}

bool write_all(const Fd& fd, std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    if (!wait_for(fd.get(), POLLOUT, deadline)) return false;
    const ssize_t n = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n > 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR && errno != EAGAIN)
      return false;
  }
  return true;
}

}  // namespace gantry::http
