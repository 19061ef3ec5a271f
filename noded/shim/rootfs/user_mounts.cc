#include "noded/shim/rootfs/user_mounts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "noded/machine/storage_view.h"
#include "noded/shim/as_user.h"
#include "noded/shim/mounts.h"

namespace gantry::runtime {

namespace {

tl::unexpected<Error> refuse(const std::string& text, const std::string& why,
                             ErrorCode code = ErrorCode::invalid_argument) {
  return fail(code, "container mount '" + text + "': " + why);
}

bool is_control(char c) {
  return (c >= 0 && c < ' ') || c == 0x7f;
}

bool forbidden_target(std::string_view path) {
  if (path == "/") return true;
  for (const std::string_view top : {"/proc", "/sys", "/dev", "/run/gantry"})
    if (path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/'))
      return true;
  return false;
}

// Whether this directory is on a file system that exists only for this container: its root's tmpfs
// or overlay, or the tmpfs of its /tmp.
bool is_ours(const Fd& root, const Fd& directory) {
  struct stat here {
  }, there{};
  if (::fstat(directory.get(), &here) != 0) return false;
  if (::fstat(root.get(), &there) == 0 && here.st_dev == there.st_dev) return true;
  struct statfs fs {};
  if (::fstatfs(directory.get(), &fs) != 0 || fs.f_type != TMPFS_MAGIC) return false;
  for (const char* path : {"/tmp", "/var/tmp"})
    if (const auto tmp = open_in_root(root, path, O_PATH | O_DIRECTORY, Links::refused))
      if (::fstat(tmp->get(), &there) == 0 && here.st_dev == there.st_dev &&
          // A scratch directory on a tmpfs does not count: it belongs to the user.
          there.st_uid == ::geteuid())
        return true;
  return false;
}

constexpr std::uint64_t kIsDirectory = 1, kIsWritable = 2;

// Opens the user's path with the user's rights. The mount is made from this descriptor, wherever
// the path leads later.
Result<FromUser> open_source(const Owner& owner, const MountSpec& spec, const std::string& text) {
  return as_user(owner, [&](const AsUser& user) -> Result<FromUser> {
    auto fd = user.open(spec.source, O_PATH);
    if (!fd) return refuse(text, fd.error().message, fd.error().code);
    struct stat st {};
    if (::fstat(fd->get(), &st) != 0) return refuse(text, errno_text(spec.source));
    const bool directory = S_ISDIR(st.st_mode);
    if (!directory && !S_ISREG(st.st_mode) && !S_ISSOCK(st.st_mode))
      return refuse(text, spec.source + " is neither a directory nor a file");
    if (auto r = check_holds_files(*fd, spec.source); !r)
      return refuse(text, spec.source + " leads to what belongs to the node's kernel");
    if (!user.may(*fd, directory ? R_OK | X_OK : R_OK))
      return refuse(text, owner.user + " may not read " + spec.source,
                    ErrorCode::permission_denied);
    const bool writable = user.may(*fd, W_OK);
    if (spec.mode == MountSpec::Mode::read_write && !writable)
      return refuse(text, owner.user + " may not write to " + spec.source,
                    ErrorCode::permission_denied);
    FromUser out;
    out.files.push_back(std::move(*fd));
    out.facts = (directory ? kIsDirectory : 0) | (writable ? kIsWritable : 0);
    return out;
  });
}

Result<void> mount_one(const LaunchRequest& request, const Fd& root, const std::string& text) {
  ASSIGN(spec, parse_mount(text));
  ASSIGN(opened, open_source(request.owner, *spec, text));
  const Fd& source = opened->files.front();
  const bool directory = (opened->facts & kIsDirectory) != 0;
  const bool writable = (opened->facts & kIsWritable) != 0;
  const auto access =
      writable && spec->mode != MountSpec::Mode::read_only ? Access::read_write : Access::read_only;
  auto target = mount_point(request, root, spec->target, directory);
  if (!target) return refuse(text, target.error().message, target.error().code);
  auto tree = clone_tree(source, access, directory);
  if (!tree) return refuse(text, tree.error().message, tree.error().code);
  if (auto r = attach_tree(*tree, *target); !r)
    return refuse(text, r.error().message, r.error().code);
  return {};
}

std::string text_of(const StorageMount& mount) {
  return mount.dataset.empty() ? "the tenant's directory " + mount.path
                               : "dataset " + mount.dataset + ", " + mount.path;
}

// The directory of the site's storage in which the mount lies; nullptr if it is in none.
const std::string* top_of(const std::vector<std::string>& tops, const StorageMount& mount) {
  for (const std::string& top : tops)
    if (mount.path != top && is_below(mount.path, top)) return &top;
  return nullptr;
}

// Opens a directory below `top`. No part of the path may be a link: tenants write there, and a link
// could lead to where only root may go.
Result<Fd> open_below(const std::string& top, const StorageMount& mount) {
  const Fd base(::open(top.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!base) return fail_errno(ErrorCode::runtime_failed, top);
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const std::string rest = mount.path.substr(top.size() + 1);
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, base.get(), rest.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if ((errno != EINTR && errno != EAGAIN) || attempt >= 100)
      return fail_errno(ErrorCode::runtime_failed, text_of(mount));
  }
}

struct Tree {
  const StorageMount* mount = nullptr;
  const std::string* top = nullptr;
  Fd tree;
};

// A directory may lie in another one, which is mounted first.
std::vector<const StorageMount*> outer_first(const std::vector<StorageMount>& mounts) {
  std::vector<const StorageMount*> out;
  for (const StorageMount& mount : mounts) out.push_back(&mount);
  std::ranges::sort(out, [](const auto* a, const auto* b) { return a->path < b->path; });
  return out;
}

Result<std::vector<Tree>> copies(const NodeSetup& setup, const LaunchRequest& request) {
  std::vector<Tree> out;
  for (const StorageMount* mount : outer_first(request.storage)) {
    const std::string* top = top_of(setup.storage, *mount);
    if (top == nullptr)
      return fail(ErrorCode::runtime_failed,
                  text_of(*mount) + ", is below none of this node's noded.storage");
    ASSIGN(source, open_below(*top, *mount));
    if (mount->project != 0)
      if (auto r = limit_room(source->get(), {mount->project, mount->size, mount->files}); !r)
        return fail(r.error().code, text_of(*mount) + ": " + r.error().message);
    auto tree = clone_tree(*source, mount->write ? Access::read_write : Access::read_only, true);
    if (!tree) return fail(tree.error().code, text_of(*mount) + ": " + tree.error().message);
    out.push_back({mount, top, std::move(*tree)});
  }
  return out;
}

}  // namespace

Result<MountSpec> parse_mount(const std::string& text) {
  const auto parts = split(text, ':');
  MountSpec spec{parts[0], parts.size() > 1 ? parts[1] : parts[0]};
  if (parts.size() > 3) return refuse(text, "expected SRC:DST[:ro|rw]");
  if (parts.size() == 3) {
    if (parts[2] != "ro" && parts[2] != "rw") return refuse(text, "the mode is 'ro' or 'rw'");
    spec.mode = parts[2] == "ro" ? MountSpec::Mode::read_only : MountSpec::Mode::read_write;
  }
  for (const auto* path : {&spec.source, &spec.target}) {
    if (path->empty() || path->front() != '/') return refuse(text, "both paths must be absolute");
    if (std::ranges::any_of(*path, is_control))
      return refuse(text, "control characters, such as a tab, are not allowed");
    for (const auto& part : split(*path, '/'))
      if (part == "..") return refuse(text, "'..' is not allowed");
  }
  for (const std::string_view top : {"/proc", "/sys", "/dev"})
    if (spec.source.starts_with(top) &&
        (spec.source.size() == top.size() || spec.source[top.size()] == '/'))
      return refuse(text, spec.source + " belongs to the node's kernel");
  while (spec.target.size() > 1 && spec.target.back() == '/') spec.target.pop_back();
  if (forbidden_target(spec.target)) return refuse(text, spec.target + " belongs to the container");
  return spec;
}

Result<Fd> mount_point(const LaunchRequest& request, const Fd& root, const std::string& path,
                       bool directory) {
  if (auto there = open_in_root(root, path, O_PATH)) {
    struct stat st {};
    if (::fstat(there->get(), &st) == 0 && S_ISDIR(st.st_mode) != directory)
      return fail(ErrorCode::invalid_argument,
                  path + (directory ? " is not a directory" : " is a directory"));
    return there;
  }
  // Checks each directory separately: a user's link may lead from one file system to the next.
  auto made = make_in_root(root, path, directory, [&](const Fd& at) { return is_ours(root, at); });
  if (made || made.error().code != ErrorCode::wrong_state) return made;
  auto done = as_user(request.owner,
                      [&](const AsUser&) -> Result<FromUser> {
                        auto place =
                            make_in_root(root, path, directory, [](const Fd&) { return true; });
                        if (!place) return tl::unexpected(place.error());
                        FromUser out;
                        out.files.push_back(std::move(*place));
                        return out;
                      },
                      {{root.get()}});
  if (!done) return tl::unexpected(done.error());
  return std::move(done->files.front());
}

Result<void> driver_mount_points(const LaunchRequest& request, const std::string& root) {
  if (request.mounts.empty()) return {};
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd) return fail_errno(ErrorCode::runtime_failed, root);
  for (const LaunchMount& m : request.mounts) {
    const bool bind = m.type.empty() || m.type == "none" || m.type == "bind";
    struct stat st {};
    if (bind && ::stat(m.source.c_str(), &st) != 0)
      return fail_errno(ErrorCode::runtime_failed, m.source);
    TRY(mount_point(request, root_fd, m.path, !bind || S_ISDIR(st.st_mode)));
  }
  return {};
}

Result<void> user_mounts(const LaunchRequest& request, const std::string& root) {
  if (request.container.mounts.empty()) return {};
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd) return fail_errno(ErrorCode::runtime_failed, root);
  for (const auto& text : request.container.mounts) TRY(mount_one(request, root_fd, text));
  return {};
}

Result<void> fence_storage(const NodeSetup& setup, const LaunchRequest& request) {
  ASSIGN(trees, copies(setup, request));
  for (const std::string& top : setup.storage) {
    if (::access(top.c_str(), F_OK) != 0) continue;  // then nothing of it is visible
    TRY(mount_tmpfs(top, "mode=755,size=1m"));
  }
  for (const Tree& one : *trees) {
    // In a copy that is already mounted the directory exists; otherwise it is made.
    const Fd top(::open(one.top->c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    auto place = open_below(*one.top, *one.mount);
    if (!place) {
      TRY(make_in_root(top, one.mount->path.substr(one.top->size()), true,
                       [](const Fd&) { return true; }));
      place = open_below(*one.top, *one.mount);
      if (!place) return tl::unexpected(place.error());
    }
    TRY(attach_tree(one.tree, *place));
  }
  for (const std::string& top : setup.storage)
    if (::access(top.c_str(), F_OK) == 0 &&
        ::mount(nullptr, top.c_str(), nullptr,
                MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0)
      return fail_errno(ErrorCode::runtime_failed, top);
  return {};
}

Result<void> show_storage(const LaunchRequest& request, const std::string& root) {
  if (request.storage.empty()) return {};
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd) return fail_errno(ErrorCode::runtime_failed, root);
  for (const StorageMount* mount : outer_first(request.storage)) {
    // Here the path leads to the copy made by fence_storage().
    const Fd source(::open(mount->path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!source) return fail_errno(ErrorCode::runtime_failed, text_of(*mount));
    ASSIGN(tree, clone_tree(source, mount->write ? Access::read_write : Access::read_only, true));
    auto place = mount_point(request, root_fd, mount->path, true);
    if (!place) return fail(place.error().code, text_of(*mount) + ": " + place.error().message);
    TRY(attach_tree(*tree, *place));
  }
  return {};
}

}  // namespace gantry::runtime
