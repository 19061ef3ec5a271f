// Mount system calls (the descriptor-based ones of Linux 5.2 and 5.12) that return Results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

// The access of a job to a bind mount. Set-uid bits and device nodes are disabled in all of them.
enum class Access { read_only, read_write };

// Makes a private, detached copy of the mount tree at `source` (a descriptor), with this access.
Result<Fd> clone_tree(const Fd& source, Access access, bool recursive, bool no_exec = false);
Result<void> attach_tree(const Fd& tree, const Fd& target);
Result<void> attach_tree(const Fd& tree, const std::string& target);  // only for trusted paths

Result<void> mount_tmpfs(const std::string& target, const std::string& options,
                         bool no_exec = false);

// How many files, directories and links a tmpfs of `bytes` for a job may hold: twice as many as it
// has pages. Empty ones use none of its bytes, but kernel memory, which not every kernel counts for
// the job.
inline std::int64_t tmpfs_files(std::int64_t bytes) {
  return std::max<std::int64_t>(1024, bytes / 2048);
}
// Options for mount_tmpfs() with both limits, starting with a comma.
std::string tmpfs_limits(std::int64_t bytes);

// Resolves `path` with `root` as "/"; the path cannot leave it. Links are followed or refused, as
// asked.
enum class Links { followed, refused };
Result<Fd> open_in_root(const Fd& root, const std::string& path, int flags,
                        Links links = Links::followed);
// Like open_in_root(), and makes missing parts (directories, or a file at the end). It makes them
// only in directories for which `may_make` returns true, and fails with wrong_state at the first
// other one. Fails where the file system is read-only.
using MayMake = std::function<bool(const Fd& directory)>;
Result<Fd> make_in_root(const Fd& root, const std::string& path, bool directory,
                        const MayMake& may_make);

// Decodes a name in mountinfo, where a blank is written \040, and so on.
std::string unescaped_mount_name(std::string_view text);

}  // namespace gantry::runtime
