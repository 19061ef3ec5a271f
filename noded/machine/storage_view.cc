#include "noded/machine/storage_view.h"

#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "common/fd.h"
#include "noded/machine/files.h"

#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif

namespace gantry::runtime {

namespace {

StorageView& own_view() {
  static StorageView view;
  return view;
}

constexpr std::int64_t kBlock = 512;  // bytes per unit of the limits in fs_disk_quota

// Returns 0 or the errno. These calls were made for XFS, but work for other file systems as well.
int quota_call(int directory, int command, std::uint32_t project, fs_disk_quota& quota) {
  const long rc = ::syscall(SYS_quotactl_fd, directory, QCMD(command, PRJQUOTA), project, &quota);
  return rc == 0 ? 0 : errno;
}

// True for the errors of a file system without project quotas or with quotas switched off, and of a
// kernel without the call.
bool is_lacking(int error) {
  constexpr std::array kLacking{ENOTTY, ENOSYS, EOPNOTSUPP, ESRCH, EINVAL, ENOTBLK, ENODEV};
  return std::ranges::find(kLacking, error) != kLacking.end();
}

fs_disk_quota limits_of(const RoomLimit& limit) {
  fs_disk_quota out{};
  out.d_version = FS_DQUOT_VERSION;
  out.d_flags = FS_PROJ_QUOTA;
  out.d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT | FS_DQ_IHARD | FS_DQ_ISOFT;
  out.d_id = limit.project;
  // A hard limit of 0 means none, so a limit below a block becomes one block.
  const std::int64_t blocks = (limit.bytes + kBlock - 1) / kBlock;
  out.d_blk_hardlimit = out.d_blk_softlimit = static_cast<std::uint64_t>(blocks);
  out.d_ino_hardlimit = out.d_ino_softlimit = static_cast<std::uint64_t>(limit.files);
  return out;
}

}  // namespace

bool is_below(std::string_view path, std::string_view top) {
  return path.substr(0, top.size()) == top &&
         (path.size() == top.size() || path[top.size()] == '/');
}

bool shows(const StorageView& view, int fd) {
  if (view.hidden.empty()) return true;
  std::array<char, 32> link{};
  std::array<char, 4096> real{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const ssize_t n = ::readlink(link.data(), real.data(), real.size());
  // A path that is too long to be read could be anywhere.
  if (n <= 0 || static_cast<std::size_t>(n) >= real.size()) return false;
  const std::string_view path(real.data(), static_cast<std::size_t>(n));
  const bool stored =
      std::ranges::any_of(view.hidden, [&](const std::string& top) { return is_below(path, top); });
  return !stored || std::ranges::any_of(
                        view.shown, [&](const StorageMount& m) { return is_below(path, m.path); });
}

void set_storage_view(StorageView view) {
  own_view() = std::move(view);
}

bool storage_shows(int fd) {
  return shows(own_view(), fd);
}

Result<void> check_storage_directory(const std::string& path) {
  bool plain = path.size() > 1 && path.front() == '/';
  for (const std::string& part : split(std::string_view(path).substr(plain ? 1 : 0), '/'))
    plain = plain && !part.empty() && part != "." && part != "..";
  if (!plain)
    return fail(ErrorCode::invalid_argument,
                "noded.storage: " + path + " is not in its shortest form, as /srv/data");
  for (std::size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    struct stat st {};
    if (::lstat(part.c_str(), &st) != 0)
      return fail_errno(ErrorCode::not_found, "noded.storage: " + part);
    if (!S_ISDIR(st.st_mode))
      return fail(ErrorCode::invalid_argument, "noded.storage: " + part + " is no directory");
    if (st.st_uid != ::geteuid() && st.st_uid != 0)
      return fail(ErrorCode::permission_denied,
                  "noded.storage: " + part + " does not belong to root");
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return fail(ErrorCode::permission_denied,
                  "noded.storage: others than root may write to " + part);
  }
  return {};
}

std::string lacks_project_quota(const std::string& directory) {
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno_text("open " + directory, errno);
  fs_quota_stat state{};
  if (::syscall(SYS_quotactl_fd, fd.get(), QCMD(Q_XGETQSTAT, PRJQUOTA), 0, &state) != 0)
    return "its file system has no quota of projects";
  return (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0
             ? std::string()
             : std::string("quota of projects is not on (mount it with prjquota)");
}

Result<void> limit_room(int directory, const RoomLimit& limit) {
  const Fd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(ErrorCode::runtime_failed, errno_text("open", errno));
  fs_disk_quota now{};
  const int seen = quota_call(fd.get(), Q_XGETQUOTA, limit.project, now);
  if (is_lacking(seen) && seen != ESRCH) return {};
  const fs_disk_quota wanted = limits_of(limit);
  const bool limited = seen == 0 && now.d_blk_hardlimit == wanted.d_blk_hardlimit &&
                       now.d_ino_hardlimit == wanted.d_ino_hardlimit;
  fs_disk_quota set = wanted;
  if (const int rc = limited ? 0 : quota_call(fd.get(), Q_XSETQLIM, limit.project, set); rc != 0)
    return is_lacking(rc) ? Result<void>{}
                          : fail(ErrorCode::runtime_failed, errno_text("its quota", rc));
  fsxattr marks{};
  if (::ioctl(fd.get(), FS_IOC_FSGETXATTR, &marks) != 0) {
    if (is_lacking(errno)) return {};
    return fail(ErrorCode::runtime_failed, errno_text("its project", errno));
  }
  if (marks.fsx_projid == limit.project && (marks.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0)
    return {};
  marks.fsx_projid = limit.project;
  marks.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  if (::ioctl(fd.get(), FS_IOC_FSSETXATTR, &marks) != 0 && !is_lacking(errno))
    return fail(ErrorCode::runtime_failed, errno_text("its project", errno));
  return {};
}

}  // namespace gantry::runtime
