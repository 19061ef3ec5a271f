#include "noded/shim/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace gantry::runtime {

Result<Fd> clone_tree(const Fd& source, Access access, bool recursive, bool no_exec) {
  const unsigned deep = recursive ? AT_RECURSIVE : 0;
  Fd tree(
      ::open_tree(source.get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | deep));
  if (!tree) return fail_errno(ErrorCode::runtime_failed, "open_tree");
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (no_exec) attr.attr_set |= MOUNT_ATTR_NOEXEC;
  if (access == Access::read_only) attr.attr_set |= MOUNT_ATTR_RDONLY;
  attr.propagation = MS_PRIVATE;
  if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH | deep, &attr, sizeof attr) != 0)
    return fail_errno(ErrorCode::runtime_failed, "mount_setattr");
  return tree;
}

Result<void> attach_tree(const Fd& tree, const Fd& target) {
  if (::move_mount(tree.get(), "", target.get(), "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
    return fail_errno(ErrorCode::runtime_failed, "move_mount");
  return {};
}

Result<void> attach_tree(const Fd& tree, const std::string& target) {
  if (::move_mount(tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return fail_errno(ErrorCode::runtime_failed, "move_mount " + target);
  return {};
}

Result<void> mount_tmpfs(const std::string& target, const std::string& options, bool no_exec) {
  const unsigned long flags = MS_NOSUID | MS_NODEV | (no_exec ? 0ul + MS_NOEXEC : 0ul);
  if (::mount("tmpfs", target.c_str(), "tmpfs", flags, options.c_str()) != 0)
    return fail_errno(ErrorCode::runtime_failed, "tmpfs at " + target);
  return {};
}

std::string tmpfs_limits(std::int64_t bytes) {
  return ",size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(tmpfs_files(bytes));
}

Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags, Links links) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  if (links == Links::refused) how.resolve |= RESOLVE_NO_SYMLINKS;
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if ((errno == EINTR || errno == EAGAIN) && attempt < 100) continue;
    return fail_errno(code_of_path_error(errno), path);
  }
}

Result<Fd> make_in_root(const Fd& root, const std::string& path, bool directory,
                        const MayMake& may_make) {
  if (auto there = open_in_root(root, path, O_PATH)) return there;
  std::string done = "/";
  auto parent = open_in_root(root, "/", O_PATH | O_DIRECTORY);
  const auto parts = split(path, '/');
  for (std::size_t i = 0; i < parts.size() && parent; ++i) {
    if (parts[i].empty() || parts[i] == ".") continue;
    if (parts[i] == "..")
      return fail(ErrorCode::invalid_argument, path + ": '..' is not allowed in a mount's target");
    done += parts[i];
    bool is_last = true;
    for (std::size_t k = i + 1; k < parts.size(); ++k) is_last = is_last && parts[k].empty();
    auto next = open_in_root(root, done, O_PATH);
    if (!next && !may_make(*parent))
      return fail(ErrorCode::wrong_state, path + ": not in a directory of the container's own");
    if (!next && (directory || !is_last)) {
      if (::mkdirat(parent->get(), parts[i].c_str(), 0755) != 0 && errno != EEXIST)
        return fail_errno(code_of_path_error(errno), path);
      next = open_in_root(root, done, O_PATH | O_DIRECTORY);
    } else if (!next) {
      const Fd made(::openat(parent->get(), parts[i].c_str(),
                             O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644));
      if (!made) return fail_errno(code_of_path_error(errno), path);
      next = open_in_root(root, done, O_PATH);
    }
    parent = std::move(next);
    done += '/';
  }
  return parent;
}

std::string unescaped_mount_name(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] != '\\' || !digit(i + 1) || !digit(i + 2) || !digit(i + 3)) {
      out += text[i];
      continue;
    }
    out +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

}  // namespace gantry::runtime
