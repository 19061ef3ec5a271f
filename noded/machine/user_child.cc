#include "noded/machine/user_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "noded/machine/become_user.h"

namespace gantry::runtime {
namespace {

// Milliseconds until a child ends that has sent all, or was killed.
constexpr int kEndPatienceMs = 1'000;

void close_others(std::vector<int> keep) {
  keep.insert(keep.end(), {0, 1, 2});
  std::sort(keep.begin(), keep.end());
  unsigned next = 0;
  for (const int fd : keep) {
    if (fd < 0) continue;
    const auto here = static_cast<unsigned>(fd);
    if (here > next) ::syscall(SYS_close_range, next, here - 1, 0u);
    next = std::max(next, here + 1);
  }
  ::syscall(SYS_close_range, next, ~0u, 0u);
}

[[noreturn]] void run(const Owner& owner, const UserChild::Work& work, const Fd& socket,
                      std::vector<int> keep, pid_t parent) {
  std::vector<gid_t> groups;
  for (const auto g : owner.groups) groups.push_back(g.value());
  const char* failed =
      become_user(owner.uid.value(), owner.gid.value(), groups.data(), groups.size());
  if (failed != nullptr)
    std::fprintf(stderr, "gantry-shim: becoming the user of id %u: %s: %s\n", owner.uid.value(),
                 failed, std::strerror(errno));
  if (failed != nullptr || ::getppid() != parent) ::_exit(kNotTheUser);
  keep.push_back(socket.get());
  close_others(std::move(keep));
  ::_exit(work(socket));
}

}  // namespace

Result<UserChild> UserChild::start(const Owner& owner, Channel channel,
                                   const std::vector<int>& keep, const Work& work) {
  const int kind = channel == Channel::bytes ? SOCK_STREAM : SOCK_SEQPACKET;
  int ends[2];
  if (::socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorCode::runtime_failed, "socketpair");
  UserChild child;
  child.socket_.reset(ends[0]);
  const Fd theirs(ends[1]);
  const pid_t parent = ::getpid();
  child.pid_ = ::fork();
  if (child.pid_ == 0) run(owner, work, theirs, keep, parent);
  if (child.pid_ < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  child.ended_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  return child;
}

int UserChild::wait() {
  pollfd ended{ended_.get(), POLLIN, 0};
  while (ended_ && ::poll(&ended, 1, kEndPatienceMs) < 0 && errno == EINTR) {
  }
  int status = -1;
  const pid_t pid = ::waitpid(pid_, &status, ended_ ? WNOHANG : 0);
  pid_ = -1;
  return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

UserChild::~UserChild() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait();
}

}  // namespace gantry::runtime
