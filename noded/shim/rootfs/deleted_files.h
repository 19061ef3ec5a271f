// Counts files of a job that have no name any more but still take up space, because processes hold
// them open or mapped. Walking through directories does not find them.
//
// A file counts if it was made below the directory, by whatever mount, and also where that cannot
// be found out. Files that are just being passed through a socket of the job are not found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::runtime {

inline constexpr std::size_t kMostDeletedFiles = 100'000;  // of a job; each file counts once

struct DeletedUse {
  std::int64_t bytes = 0;  // bytes on the disk
  bool too_many = false;  // more than kMostDeletedFiles, so nobody can say how many bytes there are
};
DeletedUse deleted_files_used(const std::string& directory, const std::vector<int>& processes);

}  // namespace gantry::runtime
