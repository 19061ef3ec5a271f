// File name patterns of --input, --output and --error, as Slurm expands them: the node opens what
// they name, and the controller finds it again for `gctl logs`.
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

// %% is a percent sign, %J is "job" or "job.step"; %5j pads with zeros to 5 digits (at most 10).
// A backslash anywhere means: take the rest as it is, without the backslashes. An unknown letter is
// refused. '/' in a value (a job may be named anything) becomes '_', so that no value leaves the
// directory that the pattern names.
Result<std::string> expand_pattern(std::string_view pattern, const PatternValues& values);

}  // namespace gantry
