// File name patterns of --input, --output and --error, expanded as Slurm does. The node opens the
// file that a pattern names, and the controller finds it again for `gctl logs`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/types.h"

namespace gantry {

struct PatternValues {
  JobId job{};                              // %j
  JobId array_job{};                        // %A; 0 = the job itself
  std::optional<std::uint32_t> array_task;  // %a; unset = 4294967294, as in Slurm
  std::string name;                         // %x
  std::string user;                         // %u
  std::string node;                         // %N
  std::uint32_t node_index = 0;             // %n
  std::uint32_t task = 0;                   // %t
  std::optional<StepId> step;               // %s; unset = "batch"
};

// Expands a pattern. %% is a percent sign, %J is "job" or "job.step", and %5j pads with zeros to 5
// digits (at most 10). If there is a backslash, the pattern is not expanded, and only the
// backslashes are removed. An unknown letter is refused. A '/' in a value (a job may have any name)
// becomes '_', so that no value leads out of the directory that the pattern names.
Result<std::string> expand_pattern(std::string_view pattern, const PatternValues& values);

}  // namespace gantry
