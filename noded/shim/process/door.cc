#include "noded/shim/process/door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <vector>

#include "noded/machine/cgroup.h"
#include "noded/machine/landlock.h"
#include "noded/machine/user_child.h"
#include "noded/shim/process/door_server.h"

namespace gantry::runtime {
namespace {

constexpr int kStartMs = 5'000;  // time until the process serves
// When memory runs out, the kernel ends other processes of the job before the door.
constexpr const char* kOomScore = "-900";

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
};

std::optional<Place> place_of(const std::string& host, std::uint16_t port) {
  Place place;
  auto* four = reinterpret_cast<sockaddr_in*>(&place.address);
  auto* six = reinterpret_cast<sockaddr_in6*>(&place.address);
  if (::inet_pton(AF_INET, host.empty() ? "0.0.0.0" : host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    place.size = sizeof *four;
    return place;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) != 1) return std::nullopt;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  place.size = sizeof *six;
  return place;
}

Result<Fd> listen_at(const std::string& host, std::uint16_t port) {
  const auto where = [&] { return "the door of the replica, port " + std::to_string(port); };
  // A name is not this node's numeric address, so the door then listens on all addresses.
  const auto place = place_of(host, port).value_or(*place_of("", port));
  Fd fd(::socket(place.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno(ErrorCode::runtime_failed, where());
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&place.address), place.size) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE)
      return fail(ErrorCode::runtime_failed,
                  where() + ": another program of this node has the port");
    return fail_errno(ErrorCode::runtime_failed, where());
  }
  return fd;
}

// The descriptors that the process needs; all are opened before the fork.
struct Ways {
  Fd user_space, network_space;
  std::vector<Fd> cgroup;
};

Result<Ways> open_ways(const Shim& shim, int inside) {
  Ways ways;
  ways.cgroup = open_cgroup_entries(shim.setup.cgroups, job_cgroup(shim.request.key));
  if (inside == 0) return ways;
  const std::string spaces = "/proc/" + std::to_string(inside) + "/ns/";
  ways.network_space.reset(::open((spaces + "net").c_str(), O_RDONLY | O_CLOEXEC));
  if (!ways.network_space)
    return fail_errno(ErrorCode::runtime_failed, "the door of the replica: the job's network");
  // A process that is not root must first enter the user namespace that owns the network namespace.
  if (::geteuid() != 0)
    ways.user_space.reset(::open((spaces + "user").c_str(), O_RDONLY | O_CLOEXEC));
  return ways;
}

void close_all_but(std::vector<int> keep) {
  std::ranges::sort(keep);
  unsigned next = 0;
  for (const int fd : keep) {
    const auto here = static_cast<unsigned>(fd);
    if (here > next) ::syscall(SYS_close_range, next, here - 1, 0u);
    next = here + 1;
  }
  ::syscall(SYS_close_range, next, ~0u, 0u);
}

void allow_files() {
  rlimit files{kDoorFiles, kDoorFiles};
  if (::setrlimit(RLIMIT_NOFILE, &files) == 0) return;
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// Returns what failed, or nullptr; errno is set.
const char* move_in(const Ways& ways, const Owner& owner, bool rootless) {
  for (const Fd& entry : ways.cgroup)
    if (::write(entry.get(), "0", 1) != 1 && !rootless) return "cgroup";
  if (ways.user_space && ::setns(ways.user_space.get(), CLONE_NEWUSER) != 0)
    return "user namespace";
  if (ways.network_space && ::setns(ways.network_space.get(), CLONE_NEWNET) != 0)
    return "network namespace";
  (void)try_write("/proc/self/oom_score_adj", kOomScore);
  allow_files();
  std::vector<gid_t> groups;
  for (const auto g : owner.groups) groups.push_back(g.value());
  const bool is_owner = rootless || ::geteuid() != 0;
  return is_owner ? become_user(::geteuid(), ::getegid(), nullptr, 0)
                  : become_user(owner.uid.value(), owner.gid.value(), groups.data(), groups.size());
}

[[noreturn]] void run(const Ways& ways, const Shim& shim, const DoorPlan& plan, const Fd& ready,
                      pid_t parent) {
  ::prctl(PR_SET_NAME, "gantry-door");
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const char* failed = move_in(ways, shim.request.owner, shim.setup.rootless);
  if (failed == nullptr && ::getppid() != parent) ::_exit(1);
  close_all_but({plan.listening, ready.get()});
  (void)keep_only({});
  if (failed == nullptr && !keep_only_calls_of_a_door()) failed = "system call filter";
  const std::string said =
      failed == nullptr ? std::string("ok") : std::string(failed) + ": " + std::strerror(errno);
  // The system call filter does not allow write().
  (void)!::send(ready.get(), said.data(), said.size(), MSG_NOSIGNAL);
  if (failed != nullptr) ::_exit(1);
  ::close(ready.get());
  ::_exit(serve_door(plan));
}

Result<void> await_ready(const Fd& ready) {
  pollfd watched{ready.get(), POLLIN, 0};
  int n = 0;
  do n = ::poll(&watched, 1, kStartMs);
  while (n < 0 && errno == EINTR);
  std::array<char, 200> said{};
  const ssize_t size = n == 1 ? ::recv(ready.get(), said.data(), said.size(), MSG_DONTWAIT) : -1;
  const std::string_view text(said.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (text == "ok") return {};
  return fail(
      ErrorCode::runtime_failed,
      "the door of the replica: " + (text.empty() ? "it does not start" : std::string(text)));
}

}  // namespace

Door& Door::operator=(Door&& other) noexcept {
  end();
  listening_ = std::move(other.listening_);
  process_ = std::move(other.process_);
  return *this;
}

Result<Door> Door::open(const LaunchRequest& request) {
  Door door;
  if (!request.door) return door;
  ASSIGN(fd, listen_at(request.door->address, request.door->port));
  door.listening_ = std::move(*fd);
  return door;
}

Result<void> Door::start(const Shim& shim, int inside) {
  if (!listening_) return {};
  ASSIGN(ways, open_ways(shim, shim.request.network == NetworkMode::host ? 0 : inside));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorCode::runtime_failed, "socketpair");
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const DoorPlan plan{listening_.get(), shim.request.door->inside, shim.request.door->password};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  if (pid == 0) run(*ways, shim, plan, theirs, parent);
  process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  theirs.reset();
  auto ready = await_ready(ours);
  listening_.reset();
  return ready;
}

void Door::end() {
  listening_.reset();
  if (!process_) return;
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  pollfd ended{process_.get(), POLLIN, 0};
  ::poll(&ended, 1, kStartMs);
  siginfo_t how{};
  ::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &how, WEXITED | WNOHANG);
  process_.reset();
}

int serve_door_alone(const std::string& address, const std::string& port,
                     const std::string& inside) {
  const auto number = [](const std::string& text) {
    std::uint16_t value = 0;
    const auto end = text.data() + text.size();
    return std::from_chars(text.data(), end, value).ptr == end ? value : std::uint16_t{0};
  };
  LaunchDoor door{address, number(port), number(inside), {}};
  std::array<char, 256> typed{};
  const ssize_t n = ::read(STDIN_FILENO, typed.data(), typed.size());
  door.password = trim(std::string_view(typed.data(), n > 0 ? static_cast<std::size_t>(n) : 0));
  if (door.port == 0 || door.inside == 0 || door.password.empty()) {
    std::fputs("gantry-shim: a door needs two ports, and a password on standard input\n", stderr);
    return 2;
  }
  const auto listening = listen_at(door.address, door.port);
  if (!listening) {
    std::fprintf(stderr, "gantry-shim: %s\n", listening.error().message.c_str());
    return 1;
  }
  allow_files();
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  (void)keep_only({});
  if (!keep_only_calls_of_a_door()) return 1;
  return serve_door({listening->get(), door.inside, door.password});
}

}  // namespace gantry::runtime
