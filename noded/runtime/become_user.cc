#include "noded/runtime/become_user.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace gantry::runtime {
namespace {

bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return ::syscall(SYS_capset, &header, none) == 0;
}

}  // namespace

bool become_user(const Owner& owner) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (::geteuid() != 0) return true;
  std::vector<gid_t> groups;
  for (const auto g : owner.groups) groups.push_back(g.value());
  const uid_t uid = owner.uid.value();
  const gid_t gid = owner.gid.value();
  if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return false;
  return uid == 0 || drop_capabilities();
}

UserChild::~UserChild() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait();
}

int UserChild::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0)
    if (errno != EINTR) break;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Result<void> UserChild::split(const Owner& owner, Fd& writer) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorCode::runtime_failed, "pipe");
  pipe_.reset(ends[0]);
  writer.reset(ends[1]);
  const int parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  if (pid_ > 0) {
    writer.reset();
    return {};
  }
  pipe_.reset();
  // The wish to die with the parent is forgotten when the ids change.
  if (!become_user(owner) || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent)
    ::_exit(125);
  return {};
}

void UserChild::leave(int status) {
  ::_exit(status);
}

}  // namespace gantry::runtime
