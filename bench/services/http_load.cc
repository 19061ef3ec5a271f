// Sends GET requests at a fixed rate over connections that are kept, whether earlier ones were
// answered or not, and prints how long the answers took. A request that waits for a free connection
// waits from the time at which it was due, so a slow server is not spared (no coordinated
// omission).
//
//   bench_http_load PORT HOST RATE SECONDS CONNECTIONS
//
// The program prints one line, which has the number of answers a second, the median and the 99th
// percentile of their times in microseconds, and the number of answers other than 200.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::microseconds;
constexpr auto kWarmUp = std::chrono::seconds(1);  // answers in it are not counted

struct Connection {
  int fd = -1;
  bool busy = false;
  Clock::time_point due;
  std::string got;
};

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    fmt::print(stderr, "bench_http_load: port {}: {}\n", port, std::strerror(errno));
    std::exit(1);
  }
  return fd;
}

// The length of the whole answer at the beginning of `text`; 0 = it is not there yet.
std::size_t answer_length(const std::string& text) {
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  std::string lower = text.substr(0, head);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t field = lower.find("content-length:");
  const std::size_t body =
      field == std::string::npos ? 0 : std::strtoul(lower.c_str() + field + 15, nullptr, 10);
  return text.size() >= head + 4 + body ? head + 4 + body : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: bench_http_load PORT HOST RATE SECONDS CONNECTIONS\n");
    return 2;
  }
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  const std::string request = fmt::format("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", argv[2]);
  const auto between = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(1 / std::atof(argv[3])));
  const double seconds = std::atof(argv[4]);
  std::vector<Connection> all(static_cast<std::size_t>(std::atoi(argv[5])));
  for (Connection& c : all) c.fd = connect_to(port);
  std::vector<pollfd> polled;
  for (const Connection& c : all) polled.push_back({c.fd, POLLIN, 0});
  std::deque<Clock::time_point> waiting;
  std::vector<std::uint32_t> times;
  std::uint64_t bad = 0;
  const auto begin = Clock::now();
  const auto end =
      begin + kWarmUp +
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  auto next = begin;
  std::size_t turn = 0;
  while (Clock::now() < end) {
    for (; next <= Clock::now(); next += between) waiting.push_back(next);
    for (std::size_t tried = 0; tried < all.size() && !waiting.empty(); ++tried) {
      Connection& c = all[turn++ % all.size()];
      if (c.busy) continue;
      c.busy = true;
      c.due = waiting.front();
      waiting.pop_front();
      if (::send(c.fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) ++bad;
    }
    const auto pause = std::max(next - Clock::now(), Clock::duration::zero());
    const timespec wait{0, std::chrono::duration_cast<std::chrono::nanoseconds>(pause).count()};
    if (::ppoll(polled.data(), polled.size(), &wait, nullptr) <= 0) continue;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (polled[i].revents == 0) continue;
      Connection& c = all[i];
      char piece[16384];
      const ssize_t n = ::recv(c.fd, piece, sizeof piece, MSG_DONTWAIT);
      if (n <= 0) {
        fmt::print(stderr, "bench_http_load: the server closed a connection\n");
        return 1;
      }
      c.got.append(piece, static_cast<std::size_t>(n));
      const std::size_t length = answer_length(c.got);
      if (length == 0) continue;
      const auto now = Clock::now();
      if (!c.got.starts_with("HTTP/1.1 200")) ++bad;
      c.got.erase(0, length);
      c.busy = false;
      if (c.due >= begin + kWarmUp)
        times.push_back(
            static_cast<std::uint32_t>(std::chrono::duration_cast<Micros>(now - c.due).count()));
    }
  }
  if (times.empty()) return 1;
  std::sort(times.begin(), times.end());
  fmt::print("{:.0f} {} {} {}\n", static_cast<double>(times.size()) / seconds,
             times[times.size() / 2], times[times.size() * 99 / 100], bad);
  return 0;
}
