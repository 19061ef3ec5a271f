// Quotas of projects, as ext4 and XFS have them: what lies below a directory counts under a number,
// and the file system refuses what would be too much.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"

namespace gantry::runtime {

struct RoomLimit {
  std::uint32_t project = 0;  // 1 or more
  std::int64_t bytes = 0;     // 0 = no limit
  std::int64_t files = 0;     // 0 = no limit
};

// Returns why the file system of this directory keeps no quota of projects; "" = it keeps one.
std::string lacks_project_quota(const std::string& directory);

// Marks the directory, so that files made below it from now on count under the project, and limits
// the project. Older files count after `chattr -R -p PROJECT DIRECTORY`. The function does nothing
// where the file system keeps no such quota. `directory` may be opened with O_PATH. The error says
// what the kernel refused.
Result<void> limit_room(int directory, const RoomLimit& limit);

}  // namespace gantry::runtime
