#include "noded/shim/process/user_namespace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "noded/machine/files.h"

namespace gantry::runtime {
namespace {

// Only the effective id changes, so the capabilities stay permitted: this user may make a namespace
// also where ordinary users may not.
bool become(std::uint32_t uid) {
  if (::syscall(SYS_setresuid, -1, uid, -1) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  for (auto& set : sets) set.effective = set.permitted;
  return ::syscall(SYS_capset, &header, sets) == 0;
}

[[noreturn]] void hold_namespace(std::uint32_t uid, const Fd& up, pid_t shim) {
  const int error = become(uid) && ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // this comes after the change of ids, which clears it
  if (::getppid() != shim) ::_exit(1);
  (void)!::write(up.get(), &error, sizeof error);
  for (;;) ::pause();
}

Result<void> write_map(const std::string& path, const std::vector<IdRange>& ranges) {
  std::string text;
  for (const IdRange& r : ranges)
    text += std::to_string(r.inside) + " " + std::to_string(r.outside) + " " +
            std::to_string(r.count) + "\n";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno(ErrorCode::runtime_failed, path);
  return {};
}

}  // namespace

Result<UserNamespace> UserNamespace::make(JobId job, const std::vector<IdRange>& uids,
                                          const std::vector<IdRange>& gids) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorCode::runtime_failed, "pipe");
  const Fd down(ends[0]);
  Fd up(ends[1]);
  const auto uid = static_cast<std::uint32_t>(kNamespaceUidBase + job.value() % kNamespaceUids);
  const pid_t shim = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  if (pid == 0) hold_namespace(uid, up, shim);
  up.reset();
  UserNamespace made(pid);
  int error = 0;
  if (::read(down.get(), &error, sizeof error) != sizeof error) error = ESRCH;
  if (error != 0)
    return fail(ErrorCode::runtime_failed, errno_text("a user namespace for the job", error));
  const std::string process = "/proc/" + std::to_string(pid);
  TRY(write_map(process + "/uid_map", uids));
  TRY(write_map(process + "/gid_map", gids));
  return made;
}

UserNamespace::UserNamespace(UserNamespace&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)) {}

UserNamespace::~UserNamespace() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string UserNamespace::path() const {
  return "/proc/" + std::to_string(pid_) + "/ns/user";
}

}  // namespace gantry::runtime
