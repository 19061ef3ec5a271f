// What jobs use, for limits of use of QOS and associations (ctld/core/limits): what a placed job
// counts, what jobs hold and wait for now (derived), and what was used up over time (durable).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/fields.h"
#include "common/types.h"
#include "ctld/core/state/use_of_job.h"
#include "ctld/sched/grant.h"
#include "ctld/sched/tenancy.h"

namespace gantry::core {

// Jobs that count for the same limits.
struct UseKey {
  std::uint32_t qos = 0;  // index of the priority class
  PartitionId partition{};
  std::optional<sched::ShareId>
      share;  // leaf of tenant, account and user; unset: the job belongs to no tenant
  Uid uid{};
  friend auto operator<=>(const UseKey&, const UseKey&) = default;
};

// The amount of one TRES that running jobs hold. `rate` is its sum weighted with the jobs' usage
// factors (millionths); `rate_end` is the same sum with each job's weight times the end of its time
// limit, in seconds since the epoch. So rate_end - rate * now is what these jobs may still use.
struct HeldTres {
  std::int64_t amount = 0;
  __int128 rate = 0, rate_end = 0;
  friend bool operator==(const HeldTres&, const HeldTres&) = default;
};

struct UseSum {
  std::uint64_t submitted = 0;  // waiting and running jobs; each array task counts
  std::uint64_t running = 0;
  std::map<std::string, HeldTres> held;
  std::map<NodeId, std::uint32_t> nodes;  // how many of the jobs run on each node
  friend bool operator==(const UseSum&, const UseSum&) = default;
};
using UseTable = std::map<UseKey, UseSum>;

// What a QOS or a node of the share tree has used, decayed; seconds of each TRES, times the usage
// factor. Durable.
struct UseRecord {
  std::map<std::string, sched::DecayedUsage> tres;
  sched::DecayedUsage wall;
  std::uint32_t running = 0;  // attempts that charge it now
  GANTRY_FIELDS(FIELD(1, tres), FIELD(2, wall), FIELD(3, running))
};

}  // namespace gantry::core
