#include "noded/shim/host_view.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "noded/runtime/job_dir.h"
#include "noded/shim/as_user.h"
#include "noded/shim/mounts.h"
#include "noded/shim/user_mounts.h"

namespace gantry::runtime {
namespace {

// Made anew for each container, or of no use in it.
constexpr std::array<std::string_view, 6> kNotShown{"proc", "sys", "dev",
                                                    "run",  "tmp", "lost+found"};

constexpr std::array<std::string_view, 15> kPseudo{
    "proc",   "sysfs", "cgroup", "cgroup2",    "devtmpfs", "devpts",      "debugfs", "tracefs",
    "mqueue", "bpf",   "pstore", "securityfs", "efivarfs", "binfmt_misc", "configfs"};

bool below(std::string_view path, std::string_view top) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

Result<void> show_entry(const std::string& root, const std::string& name) {
  const std::string source = "/" + name;
  const std::string target = root + "/" + name;
  struct stat st {};
  if (::lstat(source.c_str(), &st) != 0) return {};
  if (S_ISLNK(st.st_mode)) {
    std::array<char, 4096> link{};
    const ssize_t n = ::readlink(source.c_str(), link.data(), link.size() - 1);
    if (n > 0 && ::symlink(link.data(), target.c_str()) != 0)
      return fail_errno(ErrorCode::runtime_failed, target);
    return {};
  }
  if (!S_ISDIR(st.st_mode)) return {};
  if (::mkdir(target.c_str(), 0755) != 0) return fail_errno(ErrorCode::runtime_failed, target);
  const Fd fd(::open(source.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorCode::runtime_failed, source);
  auto tree = clone_tree(fd, Access::read_only, true);
  if (!tree) return fail(ErrorCode::runtime_failed, source + ": " + tree.error().message);
  return attach_tree(*tree, target);
}

bool shared_place(std::string_view path) {
  constexpr std::array<std::string_view, 7> kShared{"/",    "/tmp",     "/var/tmp", "/run",
                                                    "/dev", "/dev/shm", "/var"};
  return std::find(kShared.begin(), kShared.end(), path) != kShared.end();
}

// Binds `path` at its own place if the user may use it there; false when it is not worth it.
Result<bool> show_own(const LaunchRequest& request, const std::string& root,
                      const std::string& path, bool must_be_owner) {
  if (path.empty() || path.front() != '/' || shared_place(path) || below(path, "/dev") ||
      below(path, "/proc") || below(path, "/sys"))
    return false;
  Fd source;
  {
    const AsUser user(request.owner);
    auto fd = user.open(path, O_PATH | O_DIRECTORY);
    if (!fd || !user.may(*fd, X_OK)) return false;
    struct stat st {};
    if (::fstat(fd->get(), &st) != 0) return false;
    const bool hidden = below(path, "/tmp") || below(path, "/run") || below(path, "/var/tmp");
    const bool owner = st.st_uid == request.owner.uid.value() || ::geteuid() != 0;
    if (must_be_owner ? !owner : !(user.may(*fd, W_OK) || hidden)) return false;
    source = std::move(*fd);
  }
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto target = mount_point(request, root_fd, path, true);
  if (!target) return tl::unexpected(target.error());
  auto tree = clone_tree(source, Access::read_write, true);
  if (!tree) return tl::unexpected(tree.error());
  if (auto r = attach_tree(*tree, *target); !r) return tl::unexpected(r.error());
  return true;
}

// A file of the host over one of the container's. One that cannot be shown keeps no job back.
void show_file(const LaunchRequest& request, const std::string& root, const std::string& file,
               const std::string& as) {
  const Fd source(::open(file.c_str(), O_PATH | O_CLOEXEC));
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto target = mount_point(request, root_fd, as, false);
  if (!source || !target) return;
  if (auto tree = clone_tree(source, Access::read_only, false)) (void)attach_tree(*tree, *target);
}

// With the host's network, name resolution needs the host's file: in the host view the one that
// /etc/resolv.conf points to below /run, in an image itself.
void show_resolver(const LaunchRequest& request, const std::string& root, bool image) {
  constexpr const char* kName = "/etc/resolv.conf";
  std::array<char, 4096> real{};
  if (::realpath(kName, real.data()) == nullptr) return;
  if (!image && !below(real.data(), "/run")) return;
  show_file(request, root, real.data(), image ? kName : real.data());
}

// Scripts go to the first node of a job by its name, and programs to themselves by theirs: where
// the host's own list has no such name, the job's has. An image without the host's network need not
// know the host's.
void show_hosts(const NodeSetup& setup, const LaunchRequest& request, const std::string& root,
                bool image) {
  constexpr const char* kName = "/etc/hosts";
  std::array<char, 4096> real{};
  const bool there = ::realpath(kName, real.data()) != nullptr;
  if (!there && !image) return;
  const bool of_host = there && (!image || request.network == NetworkMode::host);
  auto text = of_host ? read_file(real.data())
                      : Result<std::string>("127.0.0.1 localhost\n::1 localhost\n");
  if (!text) return;
  if (!text->empty() && text->back() != '\n') *text += '\n';
  std::string padded = *text;
  std::replace_if(
      padded.begin(), padded.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  for (const auto& [name, address] : request.hosts)
    if (padded.find(" " + name + " ") == std::string::npos) *text += address + " " + name + "\n";
  const std::string dir = job_dir(setup.state_dir, request.key);
  const Fd dir_fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd || !write_small(dir_fd.get(), kHostsFile, *text, 0644)) return;
  show_file(request, root, dir + "/" + kHostsFile, image ? kName : real.data());
}

}  // namespace

Result<void> drop_pseudo(const std::string& root) {
  const auto text = read_file("/proc/self/mountinfo");
  if (!text) return fail(ErrorCode::runtime_failed, text.error().message);
  std::vector<std::string> found;
  for (const auto& line : split(*text, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = split(std::string_view(line).substr(0, dash), ' ');
    const auto type = std::string_view(line).substr(dash + 3);
    if (left.size() < 5 || !below(left[4], root) || left[4] == root) continue;
    for (const auto pseudo : kPseudo)
      if (type.starts_with(pseudo) && type.size() > pseudo.size() && type[pseudo.size()] == ' ')
        found.push_back(left[4]);
  }
  // Deepest last in mountinfo; a name with blanks is escaped there (\040), and covered instead.
  for (auto it = found.rbegin(); it != found.rend(); ++it)
    if (::umount2(it->c_str(), MNT_DETACH) != 0 && ::access(it->c_str(), F_OK) == 0)
      if (auto r = mount_tmpfs(*it, "mode=555,size=4k"); !r) return r;
  return {};
}

Result<void> host_directories(const std::string& root) {
  for (const auto& name : list_dir("/")) {
    if (std::find(kNotShown.begin(), kNotShown.end(), name) != kNotShown.end()) continue;
    if (auto r = show_entry(root, name); !r) return r;
  }
  return {};
}

Result<void> own_directories(const NodeSetup& setup, const LaunchRequest& request,
                             const std::string& root, bool image) {
  std::string home_shown;
  if (!image) {
    auto shown = show_own(request, root, request.owner.home, true);
    if (!shown) return tl::unexpected(shown.error());
    if (*shown) home_shown = request.owner.home;
    for (const auto& path : setup.writable_paths)
      if (auto r = show_own(request, root, path, false); !r) return tl::unexpected(r.error());
  }
  if (request.network == NetworkMode::host) show_resolver(request, root, image);
  const bool shares = image && request.network == NetworkMode::host;
  if (shares || !request.hosts.empty()) show_hosts(setup, request, root, image);
  if (!home_shown.empty() && below(request.work_dir, home_shown)) return {};
  auto r = show_own(request, root, request.work_dir, false);
  if (!r) return tl::unexpected(r.error());
  return {};
}

}  // namespace gantry::runtime
