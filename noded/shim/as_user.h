// Work in the name of a job's owner. The shim is root, and stays root; what it has to do with paths
// that a user names is done by a child that has become the user altogether (user_child.h), and
// that passes the descriptors back. So the kernel sees the user in every check, also in those that
// look at ids and capabilities and not at a file's mode.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

class AsUser;
struct FromUser {
  std::vector<Fd> files;
  std::uint64_t facts = 0;  // whatever else the work found out
};
using UserWork = std::function<Result<FromUser>(const AsUser&)>;

struct UserWorkLimits {
  std::vector<int> keep{};  // descriptors that the work uses
  int patience_ms = -1;     // -1 = as long as the shim itself is not told to end
};

// Waits until the work is done, and returns what it did. runtime_failed: it took longer than its
// patience, or the shim was told to end meanwhile (the signal stays to be seen).
Result<FromUser> as_user(const Owner& owner, const UserWork& work,
                         const UserWorkLimits& limits = {});

// The calls that such work consists of. There is one in the child, and none anywhere else.
class AsUser {
 public:
  // Flags as for open(2); O_CLOEXEC is added. Never through a magic link such as /proc/self/fd/3;
  // relative paths are refused.
  [[nodiscard]] Result<Fd> open(const std::string& path, int flags) const;
  // What a job may read from or write to: a regular file, a named pipe or /dev/null, on a file
  // system that holds files. Anything else is refused before it is opened, so that no device
  // notices. Without O_NONBLOCK afterwards, but it has not waited for the other end of a pipe.
  // O_CREAT makes what is missing; O_EXCL and O_NOFOLLOW are not for here.
  [[nodiscard]] Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0) const;
  // Do the user's rights allow this (R_OK, W_OK, X_OK) on an O_PATH descriptor?
  [[nodiscard]] bool may(const Fd& fd, int how) const;

 private:
  friend Result<FromUser> as_user(const Owner& owner, const UserWork& work,
                                  const UserWorkLimits& limits);
  explicit AsUser(std::uint32_t uid) : uid_(uid) {}
  [[nodiscard]] Result<void> check_kept_apart(const Fd& file, const Fd& directory,
                                              const std::string& path) const;
  [[nodiscard]] Result<std::optional<std::string>> target_of(const Fd& link, const Fd& directory,
                                                             const std::string& path) const;
  std::uint32_t uid_;
};

// invalid_argument where the descriptor's file system holds no files of anybody (pseudo_files.h).
Result<void> check_holds_files(const Fd& fd, const std::string& path);

// For work that opens one file.
Result<Fd> open_as_user(const Owner& owner, const std::function<Result<Fd>(const AsUser&)>& work);

// Writes into a file of the user's, with the user's rights and within the user's quota. What cannot
// be written within two seconds (a full pipe that nobody reads) is dropped.
void write_as_user(const Owner& owner, int fd, std::string_view text);

}  // namespace gantry::runtime
