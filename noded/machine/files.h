// Reads, writes and removes small files, for noded and its shims. Every descriptor is
// close-on-exec.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "common/text/split.h"
#include "common/types.h"

namespace gantry::runtime {

// Makes "PATH: No such file or directory", from errno or a given number.
std::string errno_text(std::string_view what);
std::string errno_text(std::string_view what, int error);
tl::unexpected<Error> fail_errno(ErrorCode code, std::string_view what);
// The error code for a path that a user named. The user can correct not_found, permission_denied
// and invalid_argument; every other error (a full disk, a dead file server, no more descriptors)
// the user cannot.
ErrorCode code_of_path_error(int error);

Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 64u << 20);
// Writes an existing file with one write(), as cgroup files need it; the error text has the errno.
Result<void> write_existing(const std::string& path, std::string_view text);
bool try_write(const std::string& path, std::string_view text);

// write_whole() replaces `name` in directory `dir_fd` completely or not at all. Durable: the file
// survives a crash of the machine after the call returns (one fdatasync and one fsync of the
// directory, 0.3 ms here).
enum class Durability { none, durable };
// Writes in place with one write, for small files whose readers treat an incomplete file as
// missing.
Result<void> write_small(int dir_fd, const char* name, std::string_view bytes,
                         unsigned mode = 0600);
Result<void> write_whole(int dir_fd, const char* name, std::string_view bytes,
                         Durability durability);
// write_whole() in two parts: readers see the file after the first part, and it is durable after
// the second.
Result<Fd> write_visible(int dir_fd, const char* name, std::string_view bytes);
Result<void> make_durable(int dir_fd, const Fd& file, const char* name);

Result<void> make_dirs(const std::string& path, unsigned mode);  // mkdir -p; parents 0755
// Removes a tree that may belong to a hostile user: it never follows a link and never leaves
// `path`.
void remove_tree(const std::string& path);
std::vector<std::string> list_dir(const std::string& path);  // names, sorted, without . and ..

// When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); 0 = no process.
std::uint64_t start_time_of(int pid);

std::string trim(std::string_view text);

}  // namespace gantry::runtime
