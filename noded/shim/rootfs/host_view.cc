#include "noded/shim/rootfs/host_view.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "noded/machine/storage_view.h"
#include "noded/runtime/job_dir.h"
#include "noded/shim/as_user.h"
#include "noded/shim/mounts.h"
#include "noded/shim/rootfs/user_mounts.h"

namespace gantry::runtime {
namespace {

// Directories that each container gets new, or that are useless in it.
constexpr std::array<std::string_view, 6> kNotShown{"proc", "sys", "dev",
                                                    "run",  "tmp", "lost+found"};

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
  return std::ranges::find(kShared, path) != kShared.end();
}

// A directory that the user sees at its own path, if it needs a mount.
struct OwnPlace {
  std::string path;
  bool must_be_owner = false;  // false: the user may write to it, or it would otherwise be hidden
};

bool may_be_shown(const std::string& path) {
  return !path.empty() && path.front() == '/' && !shared_place(path) && !below(path, "/dev") &&
         !below(path, "/proc") && !below(path, "/sys");
}

Fd open_own(const AsUser& user, const Owner& owner, bool rootless, const OwnPlace& place) {
  const auto& path = place.path;
  if (!may_be_shown(path)) return {};
  auto fd = user.open(path, O_PATH | O_DIRECTORY);
  if (!fd || !user.may(*fd, X_OK) || !check_holds_files(*fd, path)) return {};
  struct stat st {};
  if (::fstat(fd->get(), &st) != 0) return {};
  const bool hidden = below(path, "/tmp") || below(path, "/run") || below(path, "/var/tmp");
  const bool owns = rootless || st.st_uid == owner.uid.value();
  if (place.must_be_owner ? !owns : !(user.may(*fd, W_OK) || hidden)) return {};
  return std::move(*fd);
}

constexpr std::size_t kPlacesAtOnce = 64;  // each place has one bit of FromUser::facts

// A process with the user's ids opens the places. Returns one descriptor for each place, empty if
// the place must not be shown.
Result<std::vector<Fd>> open_own_places(const NodeSetup& setup, const Owner& owner,
                                        std::span<const OwnPlace> places) {
  std::vector<Fd> out(places.size());
  for (std::size_t begin = 0; begin < places.size(); begin += kPlacesAtOnce) {
    const auto now = places.subspan(begin, std::min(kPlacesAtOnce, places.size() - begin));
    auto done = as_user(owner, [&](const AsUser& user) -> Result<FromUser> {
      FromUser found;
      for (std::size_t i = 0; i < now.size(); ++i) {
        Fd fd = open_own(user, owner, setup.rootless, now[i]);
        if (!fd) continue;
        found.files.push_back(std::move(fd));
        found.facts |= std::uint64_t{1} << i;
      }
      return found;
    });
    if (!done) return tl::unexpected(done.error());
    auto next = done->files.begin();
    for (std::size_t i = 0; i < now.size(); ++i)
      if ((done->facts >> i & 1) != 0) out[begin + i] = std::move(*next++);
  }
  return out;
}

Result<void> show_own(const LaunchRequest& request, const std::string& root,
                      const std::string& path, const Fd& source) {
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ASSIGN(target, mount_point(request, root_fd, path, true));
  ASSIGN(tree, clone_tree(source, Access::read_write, true));
  return attach_tree(*tree, *target);
}

// Shows a file of the host in place of one of the container's. If that fails, the job starts
// without it.
void show_file(const LaunchRequest& request, const std::string& root, const std::string& file,
               const std::string& as) {
  const Fd source(::open(file.c_str(), O_PATH | O_CLOEXEC));
  const Fd root_fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto target = mount_point(request, root_fd, as, false);
  if (!source || !target) return;
  if (auto tree = clone_tree(source, Access::read_only, false)) (void)attach_tree(*tree, *target);
}

// A job with the host's network needs the host's resolv.conf. In the host view that is the file
// below /run to which /etc/resolv.conf points; in an image it is mounted at /etc/resolv.conf
// itself.
void show_resolver(const LaunchRequest& request, const std::string& root, bool image) {
  constexpr const char* kName = "/etc/resolv.conf";
  std::array<char, 4096> real{};
  if (::realpath(kName, real.data()) == nullptr) return;
  if (!image && !below(real.data(), "/run")) return;
  show_file(request, root, real.data(), image ? kName : real.data());
}

// A job whose network profile allows resolvers gets a file that lists them.
void show_own_resolvers(const NodeSetup& setup, const LaunchRequest& request,
                        const std::string& root, bool image) {
  constexpr const char* kName = "/etc/resolv.conf";
  std::array<char, 4096> real{};
  const bool there = ::realpath(kName, real.data()) != nullptr;
  std::string text;
  for (const std::string& server : request.resolvers) text += "nameserver " + server + "\n";
  const std::string dir = job_dir(setup.state_dir, request.key);
  const Fd dir_fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd || !write_small(dir_fd.get(), kResolverFile, text, 0644)) return;
  show_file(request, root, dir + "/" + kResolverFile, image || !there ? kName : real.data());
}

// Scripts reach the first node of a job by its name, and programs reach their own node by its name.
// If the host's own file lacks such a name, the job's file adds it. An image without the host's
// network does not need the host's entries.
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
  std::string own;
  for (const auto& [name, address] : request.hosts)
    if (request.parts || padded.find(" " + name + " ") == std::string::npos)
      own += address + " " + name + "\n";
  // In a network of its own the job reaches its nodes at other addresses than the machine does.
  *text = request.parts ? own + *text : *text + own;
  const std::string dir = job_dir(setup.state_dir, request.key);
  const Fd dir_fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd || !write_small(dir_fd.get(), kHostsFile, *text, 0644)) return;
  show_file(request, root, dir + "/" + kHostsFile, image ? kName : real.data());
}

struct ListedMount {
  std::uint64_t id = 0, parent = 0;
  std::string path;
  bool pseudo = false;
};

Result<std::vector<ListedMount>> listed_mounts() {
  const auto text = read_file("/proc/self/mountinfo");
  if (!text) return fail(ErrorCode::runtime_failed, text.error().message);
  std::vector<ListedMount> out;
  for (const auto& line : split(*text, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = split(std::string_view(line).substr(0, dash), ' ');
    const auto right = split(std::string_view(line).substr(dash + 3), ' ');
    if (left.size() < 5) continue;
    out.push_back({std::strtoull(left[0].c_str(), nullptr, 10),
                   std::strtoull(left[1].c_str(), nullptr, 10), unescaped_mount_name(left[4]),
                   is_pseudo_name(right.front())});
  }
  return out;
}

std::uint64_t mount_of(const Fd& place) {
  struct statx facts {};
  return ::statx(place.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &facts) == 0 ? facts.stx_mnt_id : 0;
}

// Tells what is now at the path of a listed mount.
enum class Sight { shown, covered, moved };

struct ShownMount {
  Sight sight = Sight::moved;
  std::string path;
  Fd place;  // descriptor of the mount's root, when it is shown
};

// "Covered" means that the path, or the deepest part of it that exists, is on another mount on top
// of this one, which nobody inside the container can remove. Otherwise a user has just renamed a
// directory above it.
ShownMount shown_of(const std::vector<ListedMount>& all, const ListedMount& one) {
  std::string path = one.path;
  Fd place;
  for (;;) {
    place.reset(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (place || path.size() <= 1) break;
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  }
  const std::uint64_t found = place ? mount_of(place) : 0;
  if (found == one.id && path == one.path) return {Sight::shown, one.path, std::move(place)};
  for (std::uint64_t above = one.id, steps = 0; steps <= all.size(); ++steps) {
    if (above == found || found == 0) return {Sight::moved, one.path, Fd()};
    const auto it = std::ranges::find_if(all, [&](const ListedMount& m) { return m.id == above; });
    if (it == all.end() || it->parent == above) break;
    above = it->parent;
  }
  return {Sight::covered, one.path, Fd()};
}

// Mounts below `root` that a job could see and that hold no files.
Result<std::vector<ShownMount>> pseudo_mounts(const std::string& root) {
  ASSIGN(all, listed_mounts());
  std::vector<ShownMount> found;
  for (const ListedMount& one : *all) {
    if (!one.pseudo || !below(one.path, root) || one.path == root) continue;
    auto shown = shown_of(*all, one);
    if (shown.sight != Sight::covered) found.push_back(std::move(shown));
  }
  return found;
}

Result<void> drop_mount(const ShownMount& mount) {
  if (mount.sight != Sight::shown) return {};  // the next round searches for it again
  const std::string link = "/proc/self/fd/" + std::to_string(mount.place.get());
  if (::umount2(link.c_str(), MNT_DETACH) == 0) return {};
  struct stat st {};
  if (::fstat(mount.place.get(), &st) == 0 && S_ISDIR(st.st_mode))
    return mount_tmpfs(link, "mode=555,size=4k");
  return fail_errno(ErrorCode::runtime_failed, mount.path);
}

}  // namespace

Result<void> drop_pseudo(const std::string& root) {
  // A mount that was covered appears when the covering one is removed. A mount that cannot be
  // removed may be gone already: the kernel removes it with the directory on which it is mounted,
  // as the node daemon does with another job's network. Only a round that finds none is the last.
  constexpr int kRounds = 8;
  Result<void> last;
  for (int round = 0; round < kRounds; ++round) {
    ASSIGN(found, pseudo_mounts(root));
    if (found->empty()) return {};
    // mountinfo lists the deepest mounts last.
    for (auto it = found->rbegin(); it != found->rend(); ++it)
      if (auto r = drop_mount(*it); !r) last = std::move(r);
  }
  if (!last) return last;
  return fail(ErrorCode::runtime_failed,
              "a file system of the node's kernel cannot be kept out of the container");
}

Result<void> host_directories(const std::string& root) {
  for (const auto& name : list_dir("/")) {
    if (std::ranges::find(kNotShown, name) != kNotShown.end()) continue;
    TRY(show_entry(root, name));
  }
  return {};
}

Result<void> own_directories(const NodeSetup& setup, const LaunchRequest& request,
                             const std::string& root, bool image) {
  std::vector<OwnPlace> places{{request.work_dir}};
  if (!image) {
    places.push_back({request.owner.home, true});
    for (const auto& path : setup.writable_paths) places.push_back({path});
  }
  ASSIGN(found, open_own_places(setup, request.owner, places));
  for (std::size_t i = 1; i < places.size(); ++i)
    if ((*found)[i]) TRY(show_own(request, root, places[i].path, (*found)[i]));
  if (request.network == NetworkMode::host) show_resolver(request, root, image);
  if (!request.resolvers.empty()) show_own_resolvers(setup, request, root, image);
  const bool shares = image && request.network == NetworkMode::host;
  if (shares || !request.hosts.empty()) show_hosts(setup, request, root, image);
  const bool in_home = !image && (*found)[1] && below(request.work_dir, request.owner.home);
  if (in_home || !found->front()) return {};
  return show_own(request, root, request.work_dir, found->front());
}

}  // namespace gantry::runtime
