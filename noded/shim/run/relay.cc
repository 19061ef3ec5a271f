// The relay is one poll loop. It looks at bytes (MSG_PEEK), offers them to the other side, and
// removes only what that side took. So a slow reader makes its writer wait, and fills no memory of
// root's.
#include "noded/shim/run/relay.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "noded/machine/files.h"

namespace gantry::runtime {
namespace {

constexpr int kControl = 3;
constexpr std::size_t kPiece = 256u << 10;  // bytes
constexpr int kPiecesPerTurn = 4;  // pieces of one stream before the next stream gets its turn
constexpr short kSome = POLLIN | POLLHUP | POLLERR;

// One direction of a stream.
struct Way {
  bool blocked = false;  // the other side takes nothing at present
  bool done = false;     // nothing more comes, or the side that should take it is gone
};

struct Stream {
  Fd network, job;
  Way in, out;  // towards the job, and away from it
  bool over = false;
};

bool not_now(ssize_t n) {
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void copy(const Fd& from, const Fd& to, bool from_network, Way& way) {
  static std::array<char, kPiece> piece;
  for (int i = 0; i < kPiecesPerTurn && !way.done; ++i) {
    const ssize_t seen = ::recv(from.get(), piece.data(), piece.size(), MSG_PEEK | MSG_DONTWAIT);
    if (not_now(seen)) return;
    if (seen <= 0) {
      way.done = true;
      ::shutdown(to.get(), SHUT_WR);
      return;
    }
    const ssize_t taken =
        ::send(to.get(), piece.data(), static_cast<std::size_t>(seen), MSG_NOSIGNAL | MSG_DONTWAIT);
    way.blocked = not_now(taken);
    if (way.blocked) return;
    if (taken < 0) {
      way.done = true;
      return;
    }
    // TCP discards bytes without copying them again.
    std::size_t left = static_cast<std::size_t>(taken);
    while (left > 0) {
      const ssize_t gone =
          ::recv(from.get(), piece.data(), left, MSG_DONTWAIT | (from_network ? MSG_TRUNC : 0));
      if (gone <= 0) break;
      left -= static_cast<std::size_t>(gone);
    }
    if (left > 0) way.done = true;  // cannot happen: the bytes were there
  }
}

// The descriptor is -1 if nothing is wanted: otherwise poll() would report a failed connection for
// ever.
pollfd watch_network(const Stream& s) {
  const auto events = static_cast<short>((s.in.done || s.in.blocked ? 0 : POLLIN) |
                                         (s.out.blocked && !s.out.done ? POLLOUT : 0));
  return {events == 0 ? -1 : s.network.get(), events, 0};
}

// The job's socket is watched also after the job has sent its last byte, to see when the job closes
// it.
pollfd watch_job(const Stream& s) {
  const auto events = static_cast<short>((s.out.done || s.out.blocked ? 0 : POLLIN) |
                                         (s.in.blocked && !s.in.done ? POLLOUT : 0));
  return {events == 0 && !s.out.done ? -1 : s.job.get(), events, 0};
}

void serve(Stream& s, short network, short job) {
  if ((job & (POLLOUT | POLLHUP | POLLERR)) != 0) s.in.blocked = false;
  if ((network & (POLLOUT | POLLHUP | POLLERR)) != 0) s.out.blocked = false;
  if (network != 0 || (job & POLLOUT) != 0)
    if (!s.in.done && !s.in.blocked) copy(s.network, s.job, true, s.in);
  if ((job & kSome) != 0 || (network & POLLOUT) != 0)
    if (!s.out.done && !s.out.blocked) copy(s.job, s.network, false, s.out);
  s.over = (s.in.done && s.out.done) || (s.out.done && (job & (POLLHUP | POLLERR)) != 0);
}

struct Order {
  bool closed = false;
  Fd network, job;
};

Order take_order() {
  char byte = 0;
  int fds[2] = {-1, -1};
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(kControl, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  Order order;
  order.closed = n <= 0 && !not_now(n);
  const cmsghdr* header = n <= 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return order;
  // Fewer than two descriptors come if this process has no room for more.
  std::memcpy(fds, CMSG_DATA(header),
              std::min(sizeof fds, static_cast<std::size_t>(header->cmsg_len - CMSG_LEN(0))));
  order.network.reset(fds[0]);
  order.job.reset(fds[1]);
  return order;
}

void set_up(const Fd& network) {
  const int on = 1;
  ::setsockopt(network.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(network.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

int serve_as_relay() {
  ::close_range(kControl + 1, ~0u, 0);
  std::vector<Stream> streams;
  std::vector<pollfd> watched;
  bool closed = false;
  while (!closed || !streams.empty()) {
    watched.assign(1, {closed ? -1 : kControl, POLLIN, 0});
    for (const Stream& s : streams) {
      watched.push_back(watch_network(s));
      watched.push_back(watch_job(s));
    }
    ::poll(watched.data(), watched.size(), -1);
    for (std::size_t i = 0; i < streams.size(); ++i)
      serve(streams[i], watched[2 * i + 1].revents, watched[2 * i + 2].revents);
    std::erase_if(streams, [](const Stream& s) { return s.over; });
    if (watched[0].revents == 0) continue;
    Order order = take_order();
    closed = order.closed;
    if (!order.network || !order.job || streams.size() >= kMostRelayed) continue;
    set_up(order.network);
    streams.push_back({std::move(order.network), std::move(order.job), {}, {}, false});
  }
  return 0;
}

}  // namespace gantry::runtime
