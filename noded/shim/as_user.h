// Work with the rights of a job's owner. The shim stays root. Work on paths from a user is done by
// a child that has become the user completely (user_child.h) and passes the descriptors back. So
// all checks of the kernel are against the user, including those of ids and capabilities.
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
  std::uint64_t facts = 0;  // a number with which the work can report results
};
using UserWork = std::function<Result<FromUser>(const AsUser&)>;

struct UserWorkLimits {
  std::vector<int> keep{};  // descriptors that the work uses
  int patience_ms = -1;     // time limit; -1: until the shim itself is told to end
};

// Waits until the work is done, and returns its result. Error runtime_failed: the work took longer
// than its patience, or the shim was told to end meanwhile (the signal stays pending for the shim).
Result<FromUser> as_user(const Owner& owner, const UserWork& work,
                         const UserWorkLimits& limits = {});

// The calls from which such work is made. An object exists only in the child.
class AsUser {
 public:
  // Flags are as for open(2); O_CLOEXEC is added. The path may not lead through a magic link such
  // as /proc/self/fd/3; relative paths are refused.
  [[nodiscard]] Result<Fd> open(const std::string& path, int flags) const;
  // Opens a file that a job may read or write: a regular file, a named pipe or /dev/null, on a file
  // system that holds files. Anything else is refused before it is opened, so that no device is
  // affected. The call does not wait for the other end of a pipe; nevertheless the descriptor that
  // it returns does not have O_NONBLOCK. O_CREAT makes a missing file; the caller must not give
  // O_EXCL or O_NOFOLLOW.
  [[nodiscard]] Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0) const;
  // Whether the user's rights allow `how` (R_OK, W_OK, X_OK) on an O_PATH descriptor.
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

// invalid_argument if the descriptor's file system holds no files of users (storage_view.h).
Result<void> check_holds_files(const Fd& fd, const std::string& path);

// A short form of as_user() for work that opens one file.
Result<Fd> open_as_user(const Owner& owner, const std::function<Result<Fd>(const AsUser&)>& work);

// Writes into a file with the user's rights and within the user's quota. Text that cannot be
// written within two seconds (for example into a full pipe that nobody reads) is dropped.
void write_as_user(const Owner& owner, int fd, std::string_view text);

}  // namespace gantry::runtime
