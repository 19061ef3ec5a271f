// LimitMemory: jobs that a limit of use keeps from the scheduler; see limit_gate.h. A restart
// empties it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/core/state/job.h"

namespace gantry::core {

// Class, user, leaf of the share tree.
using LimitListKey = std::tuple<ClassId, Uid, std::uint32_t>;

struct LimitMemory {
  std::map<LimitListKey, std::set<JobId>> lists;    // by what the jobs have in common
  std::unordered_map<JobId, LimitListKey> limited;  // the list that each job is in
  std::optional<Instant> due;
};

}  // namespace gantry::core
