// Small files, for noded/runtime and the shim. Every descriptor is close-on-exec.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "common/text/split.h"
#include "common/types.h"

namespace gantry::runtime {

// "PATH: No such file or directory", from errno or a given number.
std::string errno_text(std::string_view what);
std::string errno_text(std::string_view what, int error);
tl::unexpected<Error> fail_errno(ErrorCode code, std::string_view what);
// The code for a path that a user named. not_found, permission_denied and invalid_argument are the
// user's to mend; anything else (a full disk, a dead file server, no more descriptors) is not.
ErrorCode code_of_path_error(int error);

Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 64u << 20);
// One write() to an existing file, as cgroup files want it; errno in the message.
Result<void> write_existing(const std::string& path, std::string_view text);
bool try_write(const std::string& path, std::string_view text);

// Replaces `name` in directory `dir_fd` whole or not at all. Durable: after return it survives a
// crash of the machine (one fdatasync and one fsync of the directory, 0.3 ms here).
enum class Durability { none, durable };
// In place, with one write: for small files of which a reader takes a torn one for a missing one.
Result<void> write_small(int dir_fd, const char* name, std::string_view bytes,
                         unsigned mode = 0600);
Result<void> write_whole(int dir_fd, const char* name, std::string_view bytes,
                         Durability durability);
// The same in two parts: readers see it after the first, and it is durable after the second.
Result<Fd> write_visible(int dir_fd, const char* name, std::string_view bytes);
Result<void> make_durable(int dir_fd, const Fd& file, const char* name);

Result<void> make_dirs(const std::string& path, unsigned mode);  // mkdir -p; parents 0755
// Removes a tree that may belong to a hostile user: never follows a link, never leaves `path`.
void remove_tree(const std::string& path);
std::vector<std::string> list_dir(const std::string& path);  // names, sorted, without . and ..

// When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); 0 = no process.
std::uint64_t start_time_of(int pid);

std::string trim(std::string_view text);

}  // namespace gantry::runtime
