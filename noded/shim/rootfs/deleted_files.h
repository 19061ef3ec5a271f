// Files that have no name any more and take up space all the same, because processes of a job hold
// them open or mapped: a walk over directories does not meet them.
//
// A file counts when it was made below the directory, by whatever mount; where that cannot be told
// it counts as well. Files that are only on their way through a socket of the job are not met.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::runtime {

inline constexpr std::size_t kMostDeletedFiles = 100'000;  // of a job, each counted once

struct DeletedUse {
  std::int64_t bytes = 0;  // of disk
  bool too_many = false;   // nobody can say how much there is: kMostDeletedFiles
};
DeletedUse deleted_files_used(const std::string& directory, const std::vector<int>& processes);

}  // namespace gantry::runtime
