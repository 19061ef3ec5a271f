#include "noded/shim/run/template.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "noded/machine/files.h"
#include "noded/machine/user_child.h"

namespace gantry::runtime {

namespace {

constexpr int kThirdFd = 3;  // the template's socket, or a shim's lock

// The words that /proc/PID/cmdline shows after the program's name. The kernel must be told where
// they end. Every process may tell it so, but only together with the rest of the process's memory
// map.
class CommandLine {
 public:
  CommandLine(int argc, char** argv)
      : begin_(argv[1]), end_(argv[argc - 1] + std::strlen(argv[argc - 1]) + 1) {
    const auto text = read_file("/proc/self/stat").value_or("");
    const auto fields = split(std::string_view(text).substr(text.rfind(')') + 1), ' ');
    const auto field = [&](std::size_t number) {  // numbers as in proc(5); [1] is the third
      std::uint64_t value = 0;
      if (number - 2 < fields.size()) {
        const auto& word = fields[number - 2];
        std::from_chars(word.data(), word.data() + word.size(), value);
      }
      return value;
    };
    map_.start_code = field(26);
    map_.end_code = field(27);
    map_.start_stack = field(28);
    map_.start_data = field(45);
    map_.end_data = field(46);
    map_.start_brk = field(47);
    map_.arg_start = field(48);
    map_.env_start = field(50);
    map_.env_end = field(51);
    map_.exe_fd = static_cast<__u32>(-1);
  }

  bool show(const std::vector<std::string>& words) {
    char* at = begin_;
    for (const auto& word : words) {
      if (word.size() >= static_cast<std::size_t>(end_ - at)) return false;
      std::memcpy(at, word.c_str(), word.size() + 1);
      at += word.size() + 1;
    }
    map_.arg_end = reinterpret_cast<std::uintptr_t>(at);
    map_.brk = reinterpret_cast<std::uintptr_t>(::sbrk(0));
    return ::prctl(PR_SET_MM, PR_SET_MM_MAP, &map_, sizeof map_, 0) == 0;
  }

 private:
  char* begin_;
  char* end_;
  prctl_mm_map map_{};
};

std::vector<std::string> words_of(const std::string& bytes) {
  auto words = split(bytes, '\0');
  words.pop_back();
  return words;
}

// No zombie stays. No shim is reaped before its pidfd is open, so its process id cannot be reused
// before.
void reap_shims(const Fd& signals) {
  signalfd_siginfo info{};
  (void)!::read(signals.get(), &info, sizeof info);
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

std::optional<std::vector<std::string>> serve_as_template(int argc, char** argv) {
  CommandLine line(argc, argv);
  if (!line.show({argv[1], argv[2]})) {
    std::perror("gantry-shim template: PR_SET_MM_MAP");
    return std::nullopt;
  }
  ::close_range(kThirdFd + 1, ~0u, 0);  // what noded was started with must not reach a job
  Fd socket(kThirdFd);
  sigset_t ended, none;
  sigemptyset(&none);
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &ended, nullptr);
  const Fd signals(::signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    pollfd watched[2] = {{socket.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    ::poll(watched, 2, -1);
    if (watched[1].revents != 0) reap_shims(signals);
    if (watched[0].revents == 0) continue;
    const auto order = take_passed(socket);
    if (order.bytes.empty()) return std::nullopt;
    const pid_t pid = order.fd ? ::fork() : -1;
    if (pid == 0) {
      ::dup2(order.fd.get(), socket.release());
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::setsid();
      auto words = words_of(order.bytes);
      (void)line.show(words);
      return words;
    }
    const Fd pidfd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
    const int number = pid;
    if (!pass(socket, {reinterpret_cast<const char*>(&number), sizeof number}, pidfd.get()))
      return std::nullopt;
  }
}

namespace {

constexpr int kControl = 3;
constexpr std::size_t kPiece = 256u << 10;  // bytes
constexpr int kPiecesOfStream = 4;  // pieces of one stream before the next stream gets its turn
constexpr short kSome = POLLIN | POLLHUP | POLLERR;

// One direction of a stream.
struct Flow {
  bool blocked = false;  // the other side takes nothing at present
  bool done = false;     // nothing more comes, or the side that should take it is gone
};

struct Stream {
  Fd network, job;
  Flow in, out;  // towards the job, and away from it
  bool over = false;
};

bool not_now(ssize_t n) {
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void copy(const Fd& from, const Fd& to, bool from_network, Flow& way) {
  static std::array<char, kPiece> piece;
  for (int i = 0; i < kPiecesOfStream && !way.done; ++i) {
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
