// A job's own directory on the node's scratch disk, used as its /tmp when it asked for scratch.
//
// Its size is held by looking: file systems with quotas by directory are not everywhere, and a disk
// image of the size would cost each start a mkfs. So a job may be over for a moment before it ends,
// and files that are deleted and still open are not seen.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// "" when the job asked for none. Mode 0700, owned by the job's user.
Result<std::string> make_scratch(const NodeSetup& setup, const LaunchRequest& request);
void remove_scratch(const NodeSetup& setup, const LaunchRequest& request);

// Bytes of disk below the directory; what is linked twice counts once. What goes while it looks is
// not counted.
std::int64_t scratch_used(const std::string& directory);

class ScratchLimit {
 public:
  ScratchLimit(const NodeSetup& setup, const LaunchRequest& request);

  // Looks if it is time to; true from when more is used than was asked for.
  bool is_over();
  // For poll(), in milliseconds: how long is_over() need not be asked again; -1 = ever.
  [[nodiscard]] int pause() const;
  [[nodiscard]] std::int64_t limit() const { return limit_; }  // bytes
  [[nodiscard]] std::int64_t used() const { return used_; }    // bytes, when it was looked at last

 private:
  std::string directory_;
  std::int64_t limit_ = 0;
  std::int64_t used_ = 0;
  Duration next_{};  // since the machine started
};

}  // namespace gantry::runtime
