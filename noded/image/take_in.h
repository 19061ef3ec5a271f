// Copies bytes from where a user can write to where only root can. An image's bytes get in only
// this way.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/job/placement.h"
#include "common/result.h"
#include "common/time/time.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

// Called every fifth of a second: "" = continue, otherwise why to stop.
using Stopped = std::function<std::string()>;

struct TakenIn {
  std::string digest;  // sha256 of what was copied
  std::int64_t bytes = 0;
  std::string head;  // the first bytes, at most 8
};

// A path below a directory that root made; then no link of any kind and no mount is followed.
// Without such a directory it is an absolute path, which is opened with the user's rights.
struct UserFile {
  const Fd* beneath = nullptr;
  std::string path;
  // Allowed only below one of these directories, if any are given.
  const std::vector<std::string>* within = nullptr;
};

// Whether this descriptor's true path is below one of these directories. True if there are none.
bool is_within(int fd, const std::vector<std::string>& dirs);

// Whether it belongs to procfs, sysfs, cgroups or the like. True also if that cannot be found out.
bool is_of_the_kernel(int fd);

// Copies a regular file of the owner to `out`, read by a process that has become the owner. Errors:
// invalid_argument: it is longer than `max_bytes`, or no regular file; not_found and
// permission_denied as the owner would get them. Errors begin with the path.
Result<TakenIn> take_in(const Owner& owner, const UserFile& file, const Fd& out,
                        std::int64_t max_bytes, const Stopped& stopped);

// The same, into memory.
Result<std::string> take_in_text(const Owner& owner, const UserFile& file, std::size_t max_bytes,
                                 const Stopped& stopped);

// Device, inode, size and times of a file. They show whether a file is unchanged since its content
// was read. Nothing is opened for reading.
struct FileState {
  std::string identity;  // letters, digits and dots
  bool directory = false;
  std::string true_path;  // path without links, as the kernel reported it at that moment
};
Result<FileState> look_at(const Owner& owner, const UserFile& file, const Stopped& stopped);

// Opens a directory that the owner may read and search, as an O_PATH descriptor; refuses
// directories of the kernel's file systems.
Result<Fd> open_user_directory(const Owner& owner, const std::string& path, const Stopped& stopped);

}  // namespace gantry::runtime
