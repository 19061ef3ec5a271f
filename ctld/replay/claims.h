// For the measures of a replay: could any planner have made room for a job that a tenant's nominal
// quota allows? If not, the planner is not the cause of the wait.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ctld/replay/live.h"
#include "ctld/replay/meter.h"
#include "ctld/replay/replay.h"
#include "ctld/sched/cycle/replica.h"

namespace gantry::replay {

struct Moment {  // a moment of a replay, at Outcome::end
  const Cluster& cluster;
  const Site& site;
  const Outcome& outcome;
  const Meter& meter;
  const sched::Replica& replica;
  const std::vector<Live>& live;  // by job
  const std::set<std::uint32_t>& waiting;
  const std::set<std::uint32_t>& running;
  Duration deadline{};  // deadline of a reclaim
};

// Also true if the search for a proof would take too long (places.h). A job for which others are
// leaving has its place already, so it is not examined.
[[nodiscard]] bool claim_has_place(const Moment& moment, std::size_t tenant);

}  // namespace gantry::replay
