// One epoll loop. A connection is a stranger until its header has arrived, then a visit with two
// ends. Bytes that one end cannot take wait in the Way between them, and nothing is read from the
// other end meanwhile.
#include "noded/shim/process/door_server.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <list>
#include <memory>
#include <vector>

#include "common/fd.h"
#include "common/net/proxy_header.h"

namespace gantry::runtime {

namespace {

constexpr int kEvents = 256;       // events handled in one turn
constexpr int kPiecesPerTurn = 4;  // pieces of one direction, before others get their turn
constexpr int kFullPauseMs = 50;   // pause before accepting one more connection is tried again

struct Visit;

struct End {
  Visit* visit = nullptr;
  Fd fd;
  std::uint32_t watched = 0;  // events that epoll watches
};

// One direction of a visit.
struct Direction {
  std::string kept;  // bytes that were read, and the other end has not taken yet
  bool done = false;
};

enum class Stage : std::uint8_t { header, connecting, open, over };

struct Visit {
  Stage stage = Stage::header;
  bool asks_only = false;
  std::int64_t began_ms = 0;
  std::string head;
  End gate, job;
  Direction in, out;
  std::list<std::unique_ptr<Visit>>::iterator place;
};

bool would_block(ssize_t n) {
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

std::int64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

bool same(std::string_view given, std::string_view wanted) {
  unsigned differs = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    differs |= static_cast<unsigned char>(wanted[i]) ^
               static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return differs == 0 && !wanted.empty();
}

void set_up_end(const Fd& fd) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// Makes closing this socket send a reset, which tells the gate that nobody answers.
void close_by_reset(const Fd& fd) {
  const linger hard{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

class DoorServer {
 public:
  explicit DoorServer(const DoorPlan& plan) : plan_(plan), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

  int run() {
    if (!epoll_ || !listen(EPOLL_CTL_ADD, EPOLLIN)) return 1;
    std::array<epoll_event, kEvents> events{};
    for (;;) {
      const int n = ::epoll_wait(epoll_.get(), events.data(), kEvents, pause());
      if (n < 0 && errno != EINTR) return 1;
      bool visitors_wait = false;
      for (int i = 0; i < n; ++i) {
        auto* end = static_cast<End*>(events[static_cast<std::size_t>(i)].data.ptr);
        if (end == nullptr)
          visitors_wait = true;
        else if (end->visit->stage != Stage::over)
          serve(*end, events[static_cast<std::size_t>(i)].events);
      }
      if (visitors_wait && !take_some()) return 1;
      if (full_ && !visitors_wait) full_ = !listen(EPOLL_CTL_MOD, EPOLLIN);
      send_away_the_slow();
      over_.clear();
    }
  }

 private:
  bool listen(int what, std::uint32_t events) {
    epoll_event listening{};
    listening.events = events;
    listening.data.ptr = nullptr;
    return ::epoll_ctl(epoll_.get(), what, plan_.listening, &listening) == 0;
  }

  [[nodiscard]] int pause() const {
    if (full_) return kFullPauseMs;
    if (strangers_.empty()) return -1;
    const std::int64_t left =
        strangers_.front()->began_ms + kStrangerTime.us / 1000 - monotonic_ms();
    return left < 0 ? 0 : static_cast<int>(left) + 1;
  }

  // Returns false if the listening socket has failed.
  bool take_some() {
    for (int i = 0; i < kEvents; ++i) {
      Fd fd(::accept4(plan_.listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) {
        const int why = errno;
        full_ = why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM;
        if (full_) listen(EPOLL_CTL_MOD, 0);
        return why != EBADF && why != EINVAL && why != ENOTSOCK;
      }
      if (visitors_.size() >= kMostVisitors) continue;
      if (strangers_.size() >= kMostStrangers) end(*strangers_.front());
      set_up_end(fd);
      strangers_.push_back(std::make_unique<Visit>());
      Visit& visit = *strangers_.back();
      visit.place = std::prev(strangers_.end());
      visit.began_ms = monotonic_ms();
      visit.gate = {&visit, std::move(fd), 0};
      visit.job.visit = &visit;
      watch(visit.gate, EPOLLIN);
    }
    return true;
  }

  void send_away_the_slow() {
    const std::int64_t oldest = monotonic_ms() - kStrangerTime.us / 1000;
    while (!strangers_.empty() && strangers_.front()->began_ms <= oldest) end(*strangers_.front());
  }

  void watch(End& end, std::uint32_t events) {
    if (end.watched == events && events != 0) return;
    epoll_event event{};
    event.events = events;
    event.data.ptr = &end;
    const int what = end.watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    ::epoll_ctl(epoll_.get(), what, end.fd.get(), &event);
    end.watched = events;
  }

  void serve(End& one, std::uint32_t events) {
    Visit& visit = *one.visit;
    switch (visit.stage) {
      case Stage::header: return read_head(visit);
      case Stage::connecting:
        if (&one == &visit.job) return connected(visit);
        if ((events & (EPOLLHUP | EPOLLERR)) != 0) end(visit);
        return;
      case Stage::open: return copy_both(visit, events);
      case Stage::over: return;
    }
  }

  void read_head(Visit& visit) {
    std::array<char, net::kProxyStart + net::kMostProxyRest> piece;
    for (;;) {
      std::size_t wanted = net::kProxyStart;
      std::optional<net::ProxyStart> start;
      if (visit.head.size() >= net::kProxyStart) {
        start = net::read_proxy_start(std::string_view(visit.head).substr(0, net::kProxyStart));
        if (!start) return end(visit);
        wanted += start->rest;
      }
      if (start && visit.head.size() == wanted) return look_at(visit, *start);
      const ssize_t n =
          ::recv(visit.gate.fd.get(), piece.data(), wanted - visit.head.size(), MSG_DONTWAIT);
      if (would_block(n)) return;
      if (n <= 0) return end(visit);
      visit.head.append(piece.data(), static_cast<std::size_t>(n));
    }
  }

  void look_at(Visit& visit, const net::ProxyStart& start) {
    const auto rest = std::string_view(visit.head).substr(net::kProxyStart);
    if (!same(net::read_proxy_id(start, rest), plan_.password)) return end(visit);
    visit.head.clear();
    visit.asks_only = start.command == net::ProxyCommand::local;
    visit.stage = Stage::connecting;
    visitors_.splice(visitors_.end(), strangers_, visit.place);
    visit.job.fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!visit.job.fd) return refuse(visit);
    set_up_end(visit.job.fd);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(plan_.inside);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int done =
        ::connect(visit.job.fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
    if (done == 0) return connected(visit);
    if (errno != EINPROGRESS) return refuse(visit);
    watch(visit.gate, EPOLLRDHUP);
    watch(visit.job, EPOLLOUT);
  }

  void connected(Visit& visit) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(visit.job.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
      return refuse(visit);
    if (visit.asks_only) {
      ::shutdown(visit.gate.fd.get(), SHUT_WR);
      return end(visit);
    }
    visit.stage = Stage::open;
    copy_both(visit, 0);
  }

  void refuse(Visit& visit) {
    close_by_reset(visit.gate.fd);
    end(visit);
  }

  // True if the whole connection has failed.
  static bool copy(End& from, End& to, Direction& way) {
    static std::array<char, kDoorPiece> piece;
    for (int i = 0; i < kPiecesPerTurn && !way.done; ++i) {
      if (!way.kept.empty()) {
        const ssize_t n = ::send(to.fd.get(), way.kept.data(), way.kept.size(), MSG_NOSIGNAL);
        if (would_block(n)) return false;
        if (n < 0) return true;
        way.kept.erase(0, static_cast<std::size_t>(n));
        if (!way.kept.empty()) return false;
      }
      const ssize_t n = ::recv(from.fd.get(), piece.data(), piece.size(), 0);
      if (would_block(n)) return false;
      if (n < 0) return true;
      if (n == 0) {
        way.done = true;
        ::shutdown(to.fd.get(), SHUT_WR);
        return false;
      }
      const ssize_t sent =
          ::send(to.fd.get(), piece.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL);
      if (sent < 0 && !would_block(sent)) return true;
      const std::size_t taken = sent < 0 ? 0 : static_cast<std::size_t>(sent);
      way.kept.assign(piece.data() + taken, static_cast<std::size_t>(n) - taken);
    }
    return false;
  }

  void copy_both(Visit& visit, std::uint32_t events) {
    const bool failed = copy(visit.gate, visit.job, visit.in) ||
                        copy(visit.job, visit.gate, visit.out) || (events & EPOLLERR) != 0;
    if (failed) return refuse(visit);
    if (visit.in.done && visit.out.done) return end(visit);
    watch(visit.gate, wanted(visit.in, visit.out));
    watch(visit.job, wanted(visit.out, visit.in));
  }

  // The events to watch at the end from which `reads` comes and to which `writes` goes.
  static std::uint32_t wanted(const Direction& reads, const Direction& writes) {
    std::uint32_t events =
        EPOLLET;  // never 0; edge-triggered, so an idle end causes no further events
    if (!reads.done && reads.kept.empty()) events |= EPOLLIN | EPOLLRDHUP;
    if (!writes.kept.empty()) events |= EPOLLOUT;
    return (events & (EPOLLIN | EPOLLOUT)) != 0 ? events & ~static_cast<std::uint32_t>(EPOLLET)
                                                : events;
  }

  // The visit is freed at the end of the turn, because events may still point to it.
  void end(Visit& visit) {
    auto& list = visit.stage == Stage::header ? strangers_ : visitors_;
    visit.stage = Stage::over;
    over_.splice(over_.end(), list, visit.place);
    visit.gate.fd.reset();
    visit.job.fd.reset();
  }

  const DoorPlan& plan_;
  Fd epoll_;
  bool full_ = false;
  std::list<std::unique_ptr<Visit>> strangers_, visitors_, over_;
};

#if defined(__x86_64__)
constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#else
#error "the door's filter knows x86-64 and arm64"
#endif

constexpr long kCalls[] = {SYS_recvfrom, SYS_sendto, SYS_epoll_pwait, SYS_epoll_ctl, SYS_accept4,
                           SYS_close, SYS_socket, SYS_connect, SYS_shutdown, SYS_setsockopt,
                           SYS_getsockopt, SYS_clock_gettime, SYS_epoll_create1,
                           // For the allocator
                           SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex,
#if defined(__x86_64__)
                           SYS_epoll_wait,
#endif
                           SYS_exit_group, SYS_exit, SYS_rt_sigreturn, SYS_restart_syscall};

}  // namespace

int serve_door(const DoorPlan& plan) {
  return DoorServer(plan).run();
}

bool keep_only_calls_of_a_door() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;  // sanitizers' runtimes make further calls
#else
  const auto step = [](unsigned code, unsigned value) {
    return sock_filter{static_cast<unsigned short>(code), 0, 0, value};
  };
  const auto jump = [](unsigned value, std::size_t if_so, std::size_t if_not) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned char>(if_so),
                       static_cast<unsigned char>(if_not), value};
  };
  std::vector<sock_filter> program{
      step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      jump(kMachine, 1, 0),
      step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const long call : kCalls) {
    program.push_back(jump(static_cast<unsigned>(call), 0, 1));
    program.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
#endif
}

}  // namespace gantry::runtime
