// Opening files with the rights of the job's owner: the shim is root, but every path that a user
// names is walked and opened under the user's fsuid, fsgid and groups, and never through a magic
// link such as /proc/self/fd/3. In rootless mode the shim is the user already.
#pragma once

#include <string>

#include "common/job_spec.h"
#include "common/result.h"
#include "noded/runtime/files.h"

namespace gantry::runtime {

class AsUser {
 public:
  explicit AsUser(const Owner& owner);
  ~AsUser();
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;

  // Flags as for open(2); O_CLOEXEC is added. Relative paths are refused.
  [[nodiscard]] Result<Fd> open(const std::string& path, int flags, unsigned mode = 0) const;
  // Do the user's rights allow this (R_OK, W_OK, X_OK) on an O_PATH descriptor?
  [[nodiscard]] bool may(const Fd& fd, int how) const;

 private:
  bool active_ = false;
};

}  // namespace gantry::runtime
