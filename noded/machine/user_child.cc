#include "noded/machine/user_child.h"

#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gantry::runtime {

namespace {

// Milliseconds until a child that has sent everything, or was killed, should have ended.
constexpr int kEndPatienceMs = 1'000;

void close_others(std::vector<int> keep) {
  keep.insert(keep.end(), {0, 1, 2});
  std::ranges::sort(keep);
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

constexpr int kMostCapabilities = 63;

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

const char* become_user(uid_t uid, gid_t gid, const gid_t* groups, std::size_t count) {
  // The C library's wrappers of these calls also notify other threads, which the child does not
  // have.
  if (::geteuid() == 0) {
    for (int c = 0; c <= kMostCapabilities; ++c) ::prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
    if (::syscall(SYS_setgroups, count, groups) != 0) return "setgroups";
    if (::syscall(SYS_setresgid, gid, gid, gid) != 0) return "setresgid";
    if (::syscall(SYS_setresuid, uid, uid, uid) != 0) return "setresuid";
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return "capset";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs";
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return "dumpable";
  // The changes of ids above reset this setting.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return "parent's death";
  return nullptr;
}

bool pass(const Fd& socket, std::string_view bytes, int fd) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  for (;;) {
    const ssize_t n = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    if (n >= 0 || errno != EINTR) return n == static_cast<ssize_t>(bytes.size());
  }
}

Passed take_passed(const Fd& socket) {
  std::array<char, kMaxPassedBytes> bytes{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  while ((n = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  Passed passed;
  if (n <= 0) return passed;
  passed.bytes.assign(bytes.data(), static_cast<std::size_t>(n));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    passed.fd.reset(fd);
  }
  return passed;
}

}  // namespace gantry::runtime
