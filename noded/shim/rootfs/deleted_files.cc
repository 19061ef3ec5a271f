#include "noded/shim/rootfs/deleted_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "noded/machine/files.h"
#include "noded/shim/mounts.h"

namespace gantry::runtime {
namespace {

// The kernel ends the path of a deleted file so.
constexpr std::string_view kDeleted = " (deleted)";

struct Mount {
  std::string root;  // the directory of its file system that is mounted
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

// Returns the path of a file within its file system. It returns nothing if the file's mount is none
// of these, or shows another path.
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
      // A thread that shares its process's descriptors has no others.
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

  // A mapped file may be closed. A line: "7f00-7f01 rw-s 00000000 08:01 1234 /tmp/x (deleted)"
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
  std::optional<std::string> tree_;  // where the directory lies in its file system
  std::string process_;              // the process that is looked at
  std::optional<Mounts> mounts_;     // the mounts of that process, read when first needed
  std::set<ino_t> seen_;
  DeletedUse use_;
};

}  // namespace

DeletedUse deleted_files_used(const std::string& directory, const std::vector<int>& processes) {
  Search search(directory);
  for (const int pid : processes)
    if (!search.use().too_many) search.look_at(pid);
  return search.use();
}

}  // namespace gantry::runtime
