// What one job may see of the site's storage (noded.storage). In the job's own mounts everything
// else is hidden (shim/rootfs/storage.h). Files that are opened for a job in the host's mounts,
// such as its output, are checked here after opening, when no rename can matter any more.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_access.h"
#include "common/result.h"

namespace gantry::runtime {

struct StorageView {
  std::vector<std::string> hidden;  // directories of the site's storage
  std::vector<StorageMount> shown;  // what the job sees below them
};

// Whether `path` is `top` or below it; both are absolute and normalised.
bool is_below(std::string_view path, std::string_view top);

// Whether the file of the descriptor may be used for the job. Makes only system calls and allocates
// nothing.
bool shows(const StorageView& view, int fd);

// The same with the view of this process, which is that of its job; until one is set, everything
// may be used.
void set_storage_view(StorageView view);
bool storage_shows(int fd);

// Refuses a directory of the storage unless it and all its parents belong to root and only root may
// write to them: whoever could rename one of them could move other files into view.
Result<void> check_storage_directory(const std::string& path);

// Project quotas, as in ext4 and XFS: files below a directory count under a number, and the file
// system refuses files beyond the limit.
struct RoomLimit {
  std::uint32_t project = 0;  // 1 or more
  std::int64_t bytes = 0;     // 0 = no limit
  std::int64_t files = 0;     // 0 = no limit
};

// Returns why the file system of this directory has no project quotas; "" = it has them.
std::string lacks_project_quota(const std::string& directory);

// Marks the directory, so that files made below it from now on count under the project, and limits
// the project. Older files count after `chattr -R -p PROJECT DIRECTORY`. The function does nothing
// if the file system has no such quotas. `directory` may be opened with O_PATH. The error tells
// what the kernel refused.
Result<void> limit_room(int directory, const RoomLimit& limit);

// File systems without files of users: their "files" are state of the kernel. Neither a job's
// output nor a mount may be on one, wherever the links in the user's path lead.
struct PseudoFileSystem {
  std::string_view name;  // name in /proc/self/mountinfo
  long magic = 0;         // f_type of statfs(2); 0 = this number also stands for a real file system
};

inline constexpr std::array<PseudoFileSystem, 29> kPseudoFileSystems{{
    {"proc", 0x9fa0},
    {"sysfs", 0x62656572},
    {"cgroup", 0x27e0eb},
    {"cgroup2", 0x63677270},
    {"devtmpfs", 0},
    {"devpts", 0x1cd1},
    {"debugfs", 0x64626720},
    {"tracefs", 0x74726163},
    {"mqueue", 0x19800202},
    {"bpf", 0xcafe4a11},
    {"pstore", 0x6165676c},
    {"securityfs", 0x73636673},
    {"efivarfs", 0xde5e81e4},
    {"binfmt_misc", 0x42494e4d},
    {"configfs", 0x62656570},
    {"selinuxfs", 0xf97cff8c},
    {"smackfs", 0x43415d53},
    {"apparmorfs", 0x5a3c69f0},
    {"nsfs", 0x6e736673},
    {"sockfs", 0x534f434b},
    {"pipefs", 0x50495045},
    {"anon_inodefs", 0x9041934},
    {"rpc_pipefs", 0x67596969},
    {"nfsd", 0x6e667364},
    {"fusectl", 0x65735543},
    {"resctrl", 0x7655821},
    {"xenfs", 0xabba1974},
    {"pidfs", 0x50494446},
    {"cpuset", 0x27e0eb},
}};

// Returns "" if it is no pseudo file system.
inline std::string_view pseudo_of_magic(long magic) {
  const auto at = std::ranges::find_if(kPseudoFileSystems, [&](const PseudoFileSystem& fs) {
    return fs.magic != 0 && (fs.magic & 0xffffffffL) == (magic & 0xffffffffL);
  });
  return at == kPseudoFileSystems.end() ? std::string_view() : at->name;
}

inline bool is_pseudo_name(std::string_view name) {
  return std::ranges::any_of(kPseudoFileSystems,
                             [&](const PseudoFileSystem& fs) { return fs.name == name; });
}

}  // namespace gantry::runtime
