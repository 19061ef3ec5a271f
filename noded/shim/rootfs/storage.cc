#include "noded/shim/rootfs/storage.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "noded/machine/project_quota.h"
#include "noded/machine/storage_view.h"
#include "noded/shim/mounts.h"
#include "noded/shim/rootfs/user_mounts.h"

namespace gantry::runtime {
namespace {

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

// Opens a directory below `top`. No part of the way may be a link: tenants write there, and a link
// would lead to where only root may go.
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
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->path < b->path; });
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

Result<void> fence_storage(const NodeSetup& setup, const LaunchRequest& request) {
  ASSIGN(trees, copies(setup, request));
  for (const std::string& top : setup.storage) {
    if (::access(top.c_str(), F_OK) != 0) continue;  // then nothing of it is to be seen
    if (auto r = mount_tmpfs(top, "mode=755,size=1m"); !r) return r;
  }
  for (const Tree& one : *trees) {
    // In a copy that is mounted already the directory is there, and in ours it is made.
    const Fd top(::open(one.top->c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    auto place = open_below(*one.top, *one.mount);
    if (!place) {
      TRY(make_in_root(top, one.mount->path.substr(one.top->size()), true,
                       [](const Fd&) { return true; }));
      place = open_below(*one.top, *one.mount);
      if (!place) return tl::unexpected(place.error());
    }
    if (auto r = attach_tree(one.tree, *place); !r) return r;
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
    // Here the path leads to the copy that fence_storage() has made.
    const Fd source(::open(mount->path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!source) return fail_errno(ErrorCode::runtime_failed, text_of(*mount));
    ASSIGN(tree, clone_tree(source, mount->write ? Access::read_write : Access::read_only, true));
    auto place = mount_point(request, root_fd, mount->path, true);
    if (!place) return fail(place.error().code, text_of(*mount) + ": " + place.error().message);
    if (auto r = attach_tree(*tree, *place); !r) return r;
  }
  return {};
}

}  // namespace gantry::runtime
