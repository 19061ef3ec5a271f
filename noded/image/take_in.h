// From where a user can write to where only root can: the one way in for an image's bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/job/placement.h"
#include "common/result.h"
#include "common/time/time.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

// Asked every fifth of a second: "" = go on, else why not.
using Stopped = std::function<std::string()>;

struct TakenIn {
  std::string digest;  // sha256 of what was copied
  std::int64_t bytes = 0;
  std::string head;  // its first bytes, at most 8
};

// A file named below a directory that root made: no link of any kind is followed, and no mount.
// Without a directory: an absolute path of the user's, as the user may open it.
struct UserFile {
  const Fd* beneath = nullptr;
  std::string path;
  const std::vector<std::string>* within = nullptr;  // only below one of these, when there are any
};

// Is what was opened below one of these directories, by its true path? Also where there are none.
bool is_within(int fd, const std::vector<std::string>& dirs);

// Is this of procfs, sysfs, cgroups and their like? Also where it cannot be told.
bool is_of_the_kernel(int fd);

// Copies a regular file of the owner to `out`, read by a process that has become the owner.
// invalid_argument when it is longer than `max_bytes` or no regular file; not_found,
// permission_denied as the owner would have them. Errors begin with the path.
Result<TakenIn> take_in(const Owner& owner, const UserFile& file, const Fd& out,
                        std::int64_t max_bytes, const Stopped& stopped);

// The same into memory.
Result<std::string> take_in_text(const Owner& owner, const UserFile& file, std::size_t max_bytes,
                                 const Stopped& stopped);

// What tells one state of a file from another, for those who have seen its content before: device,
// inode, size and times. Opens nothing for reading.
struct FileState {
  std::string identity;  // letters, digits and dots
  bool directory = false;
  std::string true_path;  // without links, as the kernel had it when it was looked at
};
Result<FileState> look_at(const Owner& owner, const UserFile& file, const Stopped& stopped);

// A directory that the owner may read and search, as an O_PATH descriptor; none of the kernel's.
Result<Fd> open_user_directory(const Owner& owner, const std::string& path, const Stopped& stopped);

}  // namespace gantry::runtime
