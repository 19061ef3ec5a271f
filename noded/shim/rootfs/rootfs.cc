#include "noded/shim/rootfs/rootfs.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "noded/runtime/secret_files.h"
#include "noded/shim/as_user.h"
#include "noded/shim/mounts.h"
#include "noded/shim/rootfs/host_view.h"
#include "noded/shim/rootfs/user_mounts.h"

namespace gantry::runtime {
namespace {

// Mounts a directory for the container's private files: a tmpfs of limited size, or the scratch
// disk.
Result<void> private_directory(const Fd& target, const LaunchRequest& request,
                               const std::string& scratch_dir) {
  const bool hardened = request.sandbox == Sandbox::hardened;  // no program is executed there
  if (!scratch_dir.empty()) {
    // The directory now belongs to the user, who may have replaced its path.
    const Fd source(::open(scratch_dir.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!source) return fail_errno(ErrorCode::runtime_failed, scratch_dir);
    TRY(check_holds_files(source, scratch_dir));
    ASSIGN(tree, clone_tree(source, Access::read_write, false, hardened));
    return attach_tree(*tree, target);
  }
  std::int64_t bytes = request.tmp_bytes;
  if (bytes <= 0) bytes = request.memory > 0 ? request.memory / 2 : 0;
  std::string options = "mode=1777";
  if (bytes > 0) options += tmpfs_limits(bytes);
  return mount_tmpfs("/proc/self/fd/" + std::to_string(target.get()), options, hardened);
}

Result<void> overlay_root(const Fd& lower, const std::string& base, const LaunchRequest& request,
                          bool rootless) {
  for (const char* name : {"/upper", "/work"}) TRY(make_dirs(base + name, 0755));
  // The image is named by its descriptor, because a path may contain ':' and ',', which the option
  // string does not allow.
  std::string options = "lowerdir=/proc/self/fd/" + std::to_string(lower.get()) +
                        ",upperdir=" + base + "/upper,workdir=" + base + "/work,volatile";
  if (rootless) options += ",userxattr";
  if (::mount("overlay", (base + "/root").c_str(), "overlay", MS_NOSUID | MS_NODEV,
              options.c_str()) != 0)
    return fail_errno(ErrorCode::runtime_failed, "overlay on image " + request.container.image);
  return {};
}

// Shows a directory of the node, read-only, at a path of the container that exists.
Result<void> show_directory(const Fd& root, const std::string& source, const char* target,
                            bool no_exec) {
  const Fd found(::open(source.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!found) return fail_errno(ErrorCode::runtime_failed, source);
  ASSIGN(tree, clone_tree(found, Access::read_only, false, no_exec));
  ASSIGN(place, open_in_root(root, target, O_PATH | O_DIRECTORY));
  return attach_tree(*tree, *place);
}

Result<void> private_directories(const std::string& root, const LaunchRequest& request,
                                 const RootPlan& plan) {
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_fd) return fail_errno(ErrorCode::runtime_failed, root);
  // Most of these do not exist yet: making them first takes two calls each instead of five. Only
  // the first part of each path is made in this way, because mkdirat() follows links, which an
  // image may contain.
  for (const char* name : {"proc", "sys", "dev", "tmp", "run"})
    (void)::mkdirat(root_fd.get(), name, 0755);
  const auto all_ours = [](const Fd&) { return true; };  // no user mount exists yet
  for (const char* name : {"/proc", "/sys", "/dev", "/tmp", "/run/gantry"})
    TRY(make_in_root(root_fd, name, true, all_ours));
  for (const char* name : {"/tmp", "/var/tmp"}) {
    // A link in an image stays as it is, also one at /var.
    const auto place = open_in_root(root_fd, name, O_PATH | O_DIRECTORY, Links::refused);
    if (!place) continue;
    const bool on_disk = std::string_view(name) == "/tmp";
    TRY(private_directory(*place, request, on_disk ? plan.scratch_dir : ""));
  }
  TRY(show_directory(root_fd, plan.run_dir, "/run/gantry", false));
  if (plan.secrets_dir.empty()) return {};
  TRY(make_in_root(root_fd, kSecretsInside, true, all_ours));
  return show_directory(root_fd, plan.secrets_dir, kSecretsInside, true);
}

Result<void> map_single_user() {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return fail_errno(
        ErrorCode::runtime_failed,
        "no user namespace for an ordinary user (never in a chroot; elsewhere see the "
        "sysctls user.max_user_namespaces and kernel.unprivileged_userns_clone)");
  TRY(write_existing("/proc/self/setgroups", "deny"));
  TRY(write_existing("/proc/self/uid_map", uid + " " + uid + " 1"));
  return write_existing("/proc/self/gid_map", gid + " " + gid + " 1");
}

// Returns the directory in which the job starts, as a path inside the container.
Result<std::string> working_directory(const std::string& root, const LaunchRequest& request,
                                      const RootPlan& plan) {
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto& given = request.container.work_dir;
  std::vector<std::string> choices{!given.empty() ? given : request.work_dir};
  const bool may_be_another = given.empty() && plan.image != nullptr;
  if (may_be_another && !plan.image_cwd.empty()) choices.push_back(plan.image_cwd);
  const auto usable = [&](const AsUser& user, const std::string& path) -> Result<void> {
    ASSIGN(fd, open_in_root(root_fd, path, O_PATH | O_DIRECTORY));
    if (!user.may(*fd, X_OK)) return fail_errno(code_of_path_error(errno), path);
    return {};
  };
  const auto first = as_user(request.owner,
                             [&](const AsUser& user) -> Result<FromUser> {
                               Result<void> why;
                               for (std::size_t i = 0; i < choices.size(); ++i) {
                                 auto found = usable(user, choices[i]);
                                 if (found) return FromUser{{}, i};
                                 if (i == 0) why = std::move(found);
                               }
                               return tl::unexpected(why.error());
                             },
                             {{root_fd.get()}});
  if (first) return choices[first->facts];
  if (may_be_another && first.error().code != ErrorCode::runtime_failed) return "/";
  if (first.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "working directory " + choices[0] + " does not exist");
  return fail(first.error().code, "working directory " + first.error().message);
}

// In a chroot, "/" is no mount, so it cannot be made private, pivot_root cannot leave it, and the
// kernel refuses user namespaces. So this makes the chroot a mount, and then the root of the shim's
// own mount namespace. setns() to the shim's present namespace leads to its real root; a descriptor
// leads back from there.
Result<void> make_chroot_the_root() {
  const Fd chroot(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd own(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!chroot || !own) return fail_errno(ErrorCode::runtime_failed, "own mount namespace");
  if (::setns(own.get(), CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return fail_errno(ErrorCode::runtime_failed, "private mounts outside of the chroot");
  constexpr unsigned kWhole = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE;
  // Unlike in a copy made with clone_tree(), devices still work here.
  const Fd tree(::open_tree(chroot.get(), "", kWhole));
  if (!tree) return fail_errno(ErrorCode::runtime_failed, "open_tree");
  TRY(attach_tree(tree, chroot));
  if (::fchdir(tree.get()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 ||
      ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0)
    return fail_errno(ErrorCode::runtime_failed, "leaving the chroot's outside");
  return {};
}

}  // namespace

Result<void> enter_private_mounts(const NodeSetup& setup, const LaunchRequest& request) {
  if (setup.rootless) {
    TRY(map_single_user());
  } else if (::unshare(CLONE_NEWNS) != 0) {
    return fail_errno(ErrorCode::runtime_failed, "mount namespace");
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    if (errno != EINVAL || setup.rootless)
      return fail_errno(ErrorCode::runtime_failed, "private mounts");
    TRY(make_chroot_the_root());
  }
  // crun refuses a cgroup2 mount with controllers beside v1, and does not need it. The mount is
  // covered instead of unmounted, because unmounting would wait for an RCU grace period.
  if (!setup.hide_cgroup2.empty()) TRY(mount_tmpfs(setup.hide_cgroup2, "mode=755,size=1m"));
  std::string options = "mode=711";
  if (request.memory > 0 && request.container.writable) options += tmpfs_limits(request.memory);
  return mount_tmpfs(setup.mount_dir, options);
}

Result<void> private_binds(const NodeSetup& setup, LaunchRequest& request) {
  for (std::size_t i = 0; i < request.sharing.binds.size(); ++i) {
    LaunchBind& bind = request.sharing.binds[i];
    const std::string here = setup.mount_dir + "/bind" + std::to_string(i);
    if (::mkdir(here.c_str(), 0711) != 0) return fail_errno(ErrorCode::runtime_failed, here);
    const Fd source(::open(bind.source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!source) return fail_errno(ErrorCode::runtime_failed, bind.source);
    ASSIGN(tree, clone_tree(source, Access::read_write, false, true));
    TRY(attach_tree(*tree, here));
    bind.source = here;
  }
  return {};
}

Result<Root> build_root(const NodeSetup& setup, const LaunchRequest& request,
                        const RootPlan& plan) {
  Root root{setup.mount_dir + "/root", "", !request.container.writable};
  if (::mkdir(root.path.c_str(), 0755) != 0)
    return fail_errno(ErrorCode::runtime_failed, root.path);
  ASSIGN(made, plan.image == nullptr
                   ? host_directories(root.path)
                   : overlay_root(*plan.image, setup.mount_dir, request, setup.rootless));
  TRY(private_directories(root.path, request, plan));
  TRY(own_directories(setup, request, root.path, plan.image != nullptr));
  TRY(show_storage(request, root.path));
  TRY(driver_mount_points(request, root.path));
  TRY(user_mounts(request, root.path));
  TRY(drop_pseudo(root.path));
  ASSIGN(cwd, working_directory(root.path, request, plan));
  root.cwd = *cwd;
  return root;
}

}  // namespace gantry::runtime
