// A job's own directory on the node's scratch disk, used as its /tmp when it asked for scratch.
//
// Its size is held by looking: file systems with quotas by directory are not everywhere, and a disk
// image of the size would cost each start a mkfs. So a job may be over for a moment before it ends.
// Files that are deleted and still open or mapped count (deleted_files.h).
#pragma once

#include <string>

#include "common/result.h"
#include "noded/machine/cgroup_layout.h"
#include "noded/machine/files.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// "" when the job asked for none. Mode 0700, owned by the job's user.
Result<std::string> make_scratch(const NodeSetup& setup, const LaunchRequest& request);
void remove_scratch(const NodeSetup& setup, const LaunchRequest& request);

inline constexpr int kMostScratchDepth = 500;  // directories in each other

struct ScratchUse {
  std::int64_t bytes = 0;    // of disk; a file with several names counts once
  std::int64_t deleted = 0;  // of bytes: of files that have no name any more
  bool too_deep = false;     // nobody can say how much there is: kMostScratchDepth
  bool too_many = false;     // or kMostDeletedFiles
  [[nodiscard]] bool is_over(std::int64_t limit) const {
    return too_deep || too_many || bytes > limit;
  }
};
// Everything below the directory, as root sees it. Needs the memory of one directory's name for
// each level, whatever lies there. What goes while it looks is not counted.
ScratchUse scratch_used(const std::string& directory);

// A child looks, one at a time: a user can make so many files that it takes minutes, and the shim
// has to hear signals meanwhile.
class ScratchLimit {
 public:
  ScratchLimit(const NodeSetup& setup, const LaunchRequest& request);
  ScratchLimit(const ScratchLimit&) = delete;
  ScratchLimit& operator=(const ScratchLimit&) = delete;
  ~ScratchLimit();

  // Looks if it is time to; true from when more is used than was asked for, or nobody can say.
  bool is_over();
  // For poll(), in milliseconds: how long is_over() need not be asked again; -1 = ever.
  [[nodiscard]] int pause() const;
  // Why the job has to end; "" = it does not.
  [[nodiscard]] std::string complaint() const;

 private:
  void start_look(Duration now);
  void take_answer(Duration now);

  std::string directory_;
  CgroupLayout cgroups_;
  std::string cgroup_;      // of the job
  std::int64_t limit_ = 0;  // bytes; 0 = there is none
  ScratchUse used_;         // when it was looked at last
  Duration next_{};         // since the machine started
  Duration began_{};        // the look that goes on
  Fd looker_, answer_;      // its process and pipe
};

}  // namespace gantry::runtime
