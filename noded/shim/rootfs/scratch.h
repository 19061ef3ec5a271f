// A job's own directory on the node's scratch disk. It becomes the job's /tmp if the job asked for
// scratch.
//
// The shim enforces its size by measuring it: not every file system has quotas by directory, and a
// disk image of that size would cost each start a mkfs. So a job may use more for a moment before
// it is ended. Deleted files that are still open or mapped count (DeletedUse).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// Returns "" if the job asked for no scratch. The directory has mode 0700 and belongs to the job's
// user.
Result<std::string> make_scratch(const NodeSetup& setup, const LaunchRequest& request);
void remove_scratch(const NodeSetup& setup, const LaunchRequest& request);

inline constexpr int kMostScratchDepth = 500;       // levels of nested directories
inline constexpr std::int64_t kLeastOfFile = 4096;  // bytes

struct ScratchUse {
  // Bytes on the disk; a file with several names counts once. Each file, directory and link counts
  // at least kLeastOfFile, because a disk has a limited number of them, and empty ones use no
  // bytes.
  std::int64_t bytes = 0;
  std::int64_t deleted = 0;  // part of `bytes`: in deleted files
  // Deeper than kMostScratchDepth, so the number of bytes is not known.
  bool too_deep = false;
  bool too_many = false;  // likewise if there are more than kMostDeletedFiles
  [[nodiscard]] bool is_over(std::int64_t limit) const {
    return too_deep || too_many || bytes > limit;
  }
};
// Measures everything below the directory, as root. For each level it needs only the memory of one
// name, whatever it finds. Files that are removed meanwhile are not counted.
ScratchUse scratch_used(const std::string& directory);

// A child process measures, one at a time, because with very many files it may take minutes, and
// the shim must handle signals meanwhile.
class ScratchLimit {
 public:
  ScratchLimit(const NodeSetup& setup, const LaunchRequest& request);
  ScratchLimit(const ScratchLimit&) = delete;
  ScratchLimit& operator=(const ScratchLimit&) = delete;
  ~ScratchLimit();

  // Measures if it is time. Returns true once the job used more than it asked for, or so much that
  // it cannot be measured.
  bool is_over();
  // For poll(): the number of milliseconds until is_over() has to be called again; -1 = never.
  [[nodiscard]] int pause() const;
  // Why the job has to end; "" = it need not.
  [[nodiscard]] std::string complaint() const;

 private:
  void start_look(Duration now);
  void take_answer(Duration now);

  std::string directory_;
  CgroupLayout cgroups_;
  std::string cgroup_;      // the job's cgroup
  std::int64_t limit_ = 0;  // bytes; 0 = no limit
  ScratchUse used_;         // result of the last measurement
  Duration next_{};         // start of the next measurement, as time since boot
  Duration began_{};        // when the present measurement began
  Fd looker_, answer_;      // pidfd and pipe of the measuring child
};

// Counts files of a job that have no name any more but still use disk space, because processes hold
// them open or mapped. A walk through directories does not find them.
//
// A file counts if it was made below the directory, through any mount, and also if that cannot be
// found out. Files in transit through a socket of the job are not found.

inline constexpr std::size_t kMostDeletedFiles = 100'000;  // of a job; each file counts once

struct DeletedUse {
  std::int64_t bytes = 0;  // bytes on the disk
  bool too_many = false;   // more than kMostDeletedFiles, so the number of bytes is not known
};
DeletedUse deleted_files_used(const std::string& directory, const std::vector<int>& processes);

}  // namespace gantry::runtime
