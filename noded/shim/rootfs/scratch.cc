#include "noded/shim/rootfs/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/shim/mounts.h"

namespace gantry::runtime {

namespace {

constexpr Duration kLookApart = seconds(5);
constexpr int kShare = 20;          // measuring takes at most 1 / kShare of a core
constexpr int kAnswerLookMs = 100;  // pause between two checks whether the child has finished

// The kernel appends this to the path of a deleted file.
constexpr std::string_view kDeleted = " (deleted)";

struct Mount {
  std::string root;  // the mounted directory of its file system
  std::string point;
};
using Mounts = std::map<std::uint64_t, Mount>;

Mounts mounts_of(const std::string& process) {
  Mounts out;
  for (const auto& line : split(read_file("/proc/" + process + "/mountinfo").value_or(""), '\n')) {
    const auto fields = split(line, ' ');
    if (fields.size() < 5) continue;
    out[std::strtoull(fields[0].c_str(), nullptr, 10)] = {unescaped_mount_name(fields[3]),
                                                          unescaped_mount_name(fields[4])};
  }
  return out;
}

bool lies_below(std::string_view path, std::string_view tree) {
  return path == tree || tree == "/" ||
         (path.starts_with(tree) && path.size() > tree.size() && path[tree.size()] == '/');
}

// Returns the path of a file within its file system; nullopt if the file's mount is not listed, or
// shows another path.
std::optional<std::string> path_in_file_system(const Fd& place, const Mounts& mounts) {
  struct statx facts {};
  if (::statx(place.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &facts) != 0) return std::nullopt;
  const auto mount = mounts.find(facts.stx_mnt_id);
  if (mount == mounts.end()) return std::nullopt;
  std::array<char, PATH_MAX> shown{};
  const std::string link = "/proc/self/fd/" + std::to_string(place.get());
  const ssize_t size = ::readlink(link.c_str(), shown.data(), shown.size());
  if (size <= 0) return std::nullopt;
  std::string_view path(shown.data(), static_cast<std::size_t>(size));
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  const auto& [root, point] = mount->second;
  if (!lies_below(path, point)) return std::nullopt;
  path.remove_prefix(point == "/" ? 0 : point.size());
  return (root == "/" ? "" : root) + std::string(path);
}

class Search {
 public:
  explicit Search(const std::string& directory) {
    const Fd place(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat st {};
    if (!place || ::fstat(place.get(), &st) != 0) return;
    device_ = st.st_dev;
    there_ = true;
    tree_ = path_in_file_system(place, mounts_of("self"));
  }

  void look_at(int pid) {
    if (!there_) return;
    process_ = std::to_string(pid);
    mounts_.reset();
    const std::string tasks = "/proc/" + process_ + "/task";
    for (const auto& task : list_dir(tasks)) {
      // A thread that shares its process's descriptor table has no others.
      if (task != process_ && ::syscall(SYS_kcmp, pid, std::stoi(task), KCMP_FILES, 0UL, 0UL) == 0)
        continue;
      look_at_descriptors(tasks + "/" + task + "/fd");
    }
    look_at_mappings();
  }
  [[nodiscard]] const DeletedUse& use() const { return use_; }

 private:
  void look_at_descriptors(const std::string& table) {
    DIR* dir = ::opendir(table.c_str());
    if (dir == nullptr) return;
    while (const dirent* entry = ::readdir(dir)) {
      if (use_.too_many) break;
      if (entry->d_name[0] != '.') look_at_file(table + "/" + entry->d_name);
    }
    ::closedir(dir);
  }

  // A mapped file may have no open descriptor. A line: "7f00-7f01 rw-s 00000000 08:01 1234 /tmp/x
  // (deleted)"
  void look_at_mappings() {
    const std::string map_files = "/proc/" + process_ + "/map_files/";
    for (const auto& line : split(read_file("/proc/" + process_ + "/maps").value_or(""), '\n')) {
      if (use_.too_many) return;
      if (!line.ends_with(kDeleted)) continue;
      look_at_file(map_files + line.substr(0, line.find(' ')));
    }
  }

  void look_at_file(const std::string& link) {
    struct stat st {};
    if (::stat(link.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 0 ||
        st.st_dev != device_ || seen_.contains(st.st_ino))
      return;
    const Fd file(::open(link.c_str(), O_PATH | O_CLOEXEC));
    struct stat opened {};
    if (!file || ::fstat(file.get(), &opened) != 0 || opened.st_ino != st.st_ino ||
        opened.st_dev != st.st_dev || !is_below(file))
      return;
    seen_.insert(st.st_ino);
    use_.bytes += std::int64_t{st.st_blocks} * 512;
    use_.too_many = seen_.size() > kMostDeletedFiles;
  }

  bool is_below(const Fd& file) {
    if (!tree_) return true;
    if (!mounts_) mounts_ = mounts_of(process_);
    const auto path = path_in_file_system(file, *mounts_);
    return !path || lies_below(*path, *tree_);
  }

  bool there_ = false;
  dev_t device_ = 0;
  std::optional<std::string> tree_;  // path of the directory in its file system
  std::string process_;              // the present process
  std::optional<Mounts> mounts_;     // the mounts of that process, read when first needed
  std::set<ino_t> seen_;
  DeletedUse use_;
};

}  // namespace

Result<std::string> make_scratch(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.scratch <= 0) return std::string();
  if (setup.scratch_dir.empty())
    return fail(ErrorCode::never_fits, "scratch space was asked for, but this node has none");
  const auto path = scratch_path(setup, request.key);
  // An existing directory was made by another user, if every user may make files there, or by an
  // earlier shim of this attempt. Nothing in it may belong to this job.
  remove_tree(path);
  if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(ErrorCode::runtime_failed, path);
  if (!setup.rootless &&
      ::lchown(path.c_str(), request.owner.uid.value(), request.owner.gid.value()) != 0)
    return fail_errno(ErrorCode::runtime_failed, path);
  return path;
}

void remove_scratch(const NodeSetup& setup, const LaunchRequest& request) {
  if (request.scratch > 0 && !setup.scratch_dir.empty())
    remove_tree(scratch_path(setup, request.key));
}

namespace {

void walk(int parent, const char* name, int depth, ScratchUse& use) {
  if (depth > kMostScratchDepth) use.too_deep = true;
  if (use.too_deep) return;
  // Does not enter mounts that a user has made there (FUSE), which are not on the disk.
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = depth == 0 ? 0 : RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  const int fd = static_cast<int>(::syscall(SYS_openat2, parent, name, &how, sizeof how));
  if (fd < 0) use.too_deep = use.too_deep || errno == EMFILE;
  DIR* dir = fd < 0 ? nullptr : ::fdopendir(fd);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view child = entry->d_name;
    struct stat st {};
    if (child == ".." || ::fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool directory = S_ISDIR(st.st_mode);
    const auto names = directory ? 1 : std::max<std::int64_t>(1, st.st_nlink);
    if (!directory || child == ".")
      use.bytes += std::max(kLeastOfFile, std::int64_t{st.st_blocks} * 512) / names;
    if (directory && child != ".") walk(fd, entry->d_name, depth + 1, use);
    if (use.too_deep) break;
  }
  ::closedir(dir);
}

// The walk needs one descriptor for each level.
void allow_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

ScratchUse scratch_used(const std::string& directory) {
  ScratchUse use;
  walk(AT_FDCWD, directory.c_str(), 0, use);
  return use;
}

ScratchLimit::ScratchLimit(const NodeSetup& setup, const LaunchRequest& request)
    : limit_(setup.scratch_dir.empty() ? 0 : request.scratch) {
  if (limit_ <= 0) return;
  directory_ = scratch_path(setup, request.key);
  cgroups_ = setup.cgroups;
  cgroup_ = job_cgroup(request.key);
  next_ = since_boot() + kLookApart;
}

// Uses the process's pidfd: code that waits for any child of the shim may have reaped it already.
ScratchLimit::~ScratchLimit() {
  if (!looker_) return;
  ::syscall(SYS_pidfd_send_signal, looker_.get(), SIGKILL, nullptr, 0);
  (void)::waitid(P_PIDFD, static_cast<id_t>(looker_.get()), nullptr, WEXITED);
}

void ScratchLimit::start_look(Duration now) {
  int ends[2];
  began_ = now;
  next_ = now + kLookApart;
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  Fd reader(ends[0]);
  const Fd writer(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    allow_descriptors();
    ScratchUse use = scratch_used(directory_);
    const DeletedUse deleted = deleted_files_used(directory_, cgroup_processes(cgroups_, cgroup_));
    use.deleted = deleted.bytes;
    use.bytes += deleted.bytes;
    use.too_many = deleted.too_many;
    ::_exit(::write(writer.get(), &use, sizeof use) == sizeof use ? 0 : 1);
  }
  if (pid < 0) return;
  looker_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  answer_ = std::move(reader);
}

void ScratchLimit::take_answer(Duration now) {
  ScratchUse use;
  const ssize_t n = ::read(answer_.get(), &use, sizeof use);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n == sizeof use) used_ = use;
  answer_.reset();
  if (looker_) (void)::waitid(P_PIDFD, static_cast<id_t>(looker_.get()), nullptr, WEXITED);
  looker_.reset();
  next_ = now + std::max(kLookApart, (now - began_) * kShare);
}

bool ScratchLimit::is_over() {
  if (limit_ <= 0) return false;
  // Once above the limit the job has to end, even if it deletes files now.
  if (used_.is_over(limit_)) return true;
  const Duration now = since_boot();
  if (answer_)
    take_answer(now);
  else if (now >= next_)
    start_look(now);
  return used_.is_over(limit_);
}

int ScratchLimit::pause() const {
  if (limit_ <= 0) return -1;
  if (answer_) return kAnswerLookMs;
  return static_cast<int>(std::max<std::int64_t>(1, (next_ - since_boot()).us / 1000 + 1));
}

std::string ScratchLimit::complaint() const {
  if (limit_ <= 0 || !used_.is_over(limit_)) return {};
  if (used_.too_deep)
    return "has more than " + std::to_string(kMostScratchDepth) +
           " directories in each other in /tmp; how much scratch space (--tmp) it uses cannot be "
           "told";
  if (used_.too_many)
    return "has more than " + std::to_string(kMostDeletedFiles) +
           " files open that are deleted; how much scratch space (--tmp) it uses cannot be told";
  std::string out = "exceeded its scratch space of " + std::to_string(limit_) +
                    " bytes (--tmp): " + std::to_string(used_.bytes) + " bytes used in /tmp";
  if (used_.deleted > 0)
    out +=
        ", " + std::to_string(used_.deleted) + " of them by files that are deleted and still open";
  return out;
}

DeletedUse deleted_files_used(const std::string& directory, const std::vector<int>& processes) {
  Search search(directory);
  for (const int pid : processes)
    if (!search.use().too_many) search.look_at(pid);
  return search.use();
}

}  // namespace gantry::runtime
