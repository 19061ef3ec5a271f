#include "noded/shim/as_user.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "common/assert.h"

namespace gantry::runtime {

AsUser::AsUser(const Owner& owner) {
  if (::geteuid() != 0) return;
  std::vector<gid_t> groups;
  for (const auto g : owner.groups) groups.push_back(g.value());
  const int failed = ::setgroups(groups.size(), groups.data());
  GANTRY_ASSERT(failed == 0, "setgroups of root");
  ::setfsgid(owner.gid.value());
  ::setfsuid(owner.uid.value());  // drops the capabilities that override file permissions
  GANTRY_ASSERT(::setfsuid(static_cast<uid_t>(-1)) == static_cast<int>(owner.uid.value()),
                "the file system uid is the owner's");
  active_ = true;
}

AsUser::~AsUser() {
  if (!active_) return;
  ::setfsuid(0);
  ::setfsgid(0);
  ::setgroups(0, nullptr);
}

Result<Fd> AsUser::open(const std::string& path, int flags, unsigned mode) const {
  if (path.empty() || path.front() != '/')
    return fail(ErrorCode::invalid_argument, path + ": not an absolute path");
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if ((errno == EINTR || errno == EAGAIN) && attempt < 100) continue;
    return fail_errno(code_of_path_error(errno), path);
  }
}

bool AsUser::may(const Fd& fd, int how) const {
  return ::syscall(SYS_faccessat2, fd.get(), "", how, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

}  // namespace gantry::runtime
