// The umask and the limits (setrlimit) with which a job's programs begin, as the submitting command
// had them: Slurm's --propagate. A node never gives more than it allows itself: a soft limit is
// bounded by the hard limit there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/result.h"

namespace gantry {

enum class LimitName : std::uint8_t {
  address_space = 1,
  core = 2,
  cpu_seconds = 3,
  data = 4,
  file_size = 5,
  locked_memory = 6,
  open_files = 7,
  processes = 8,
  resident_set = 9,
  stack = 10,
};
GANTRY_NAMES(LimitName, {address_space, "AS"}, {core, "CORE"}, {cpu_seconds, "CPU"}, {data, "DATA"},
             {file_size, "FSIZE"}, {locked_memory, "MEMLOCK"}, {open_files, "NOFILE"},
             {processes, "NPROC"}, {resident_set, "RSS"}, {stack, "STACK"})

struct SoftLimit {
  LimitName name = LimitName::core;
  std::optional<std::uint64_t> value;  // bytes, seconds or a number; unset = unlimited
  friend bool operator==(const SoftLimit&, const SoftLimit&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, value))
};

struct ProcessLimits {
  std::optional<std::uint32_t> umask;  // unset = the node's, 022
  std::vector<SoftLimit> soft;  // each name at most once; a name that is not here = the node's
  friend bool operator==(const ProcessLimits&, const ProcessLimits&) = default;
  GANTRY_FIELDS(FIELD(1, umask), FIELD(2, soft))
};

// Refuses a umask with other bits than those of permissions, and a limit that is named twice.
Result<void> check_limits(const ProcessLimits& limits);

// "ALL", "NONE", or names as in "NOFILE,STACK", in either case and also as "RLIMIT_STACK".
// invalid_argument: a name that is not known.
Result<std::vector<LimitName>> parse_limit_names(std::string_view text);

// The number of setrlimit() for the name.
int resource_of(LimitName name);

// The soft limits that this process has, of these names, and its umask.
ProcessLimits own_limits(const std::vector<LimitName>& names);

}  // namespace gantry
