// Tests a job's isolation from inside the job: makes attempts as an attacker would, which do no
// harm if they succeed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"

namespace gantry::cli {

// The result of one attempt at one layer of isolation on one node.
struct WallFinding {
  std::string node;
  std::string layer;    // "system call filter"
  std::string attempt;  // "mount a file system"
  std::string state;    // "on": stopped; "OFF": succeeded; "not testable"
  std::string why;      // what stopped it, or why it could not be tried
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, layer), FIELD(3, attempt), FIELD(4, state), FIELD(5, why))
};

struct WallReport {
  std::vector<WallFinding> findings;
  GANTRY_FIELDS(FIELD(1, findings))
};

inline constexpr const char* kWallOn = "on";
inline constexpr const char* kWallOff = "OFF";
inline constexpr const char* kWallUntested = "not testable";

// Makes all attempts here, in this process. With a level stronger than `standard` also those that
// it promises to stop in addition.
WallReport probe_walls(Sandbox level);

}  // namespace gantry::cli
