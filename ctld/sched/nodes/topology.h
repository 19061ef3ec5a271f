// Where the nodes of a gang lie: topology levels from the widest to the narrowest, each a set of
// domains. As Kueue's topology-aware scheduling and Slurm's block plugin have it:
//
// - required at a level: all nodes in one domain of it, or of a narrower level if one has enough;
//   of those the tightest, then the lowest index.
// - preferred: as required, then one domain of a wider level, then several: the largest first, the
//   last one the tightest.
// - balanced: the fewest domains of the level over which the nodes can be spread evenly (one more
//   or less); if there are none, as preferred.
// - no request: by place.h's order, which fills the most fragmented domains first.
// Within a domain the nodes are chosen by the next narrower level in the same way.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/queue/queue.h"

namespace gantry::sched {

// choose_nodes() with the class's topology request.
std::optional<std::vector<Share>> choose_places(const Grid& grid, const JobClass& cls,
                                                std::span<const Candidate> candidates);

// Nodes that could each hold a part, by domain of the level that the request names; one list if
// there is no such request. For those who price domains against each other.
std::vector<std::vector<std::uint32_t>> split_by_wish(const Grid& grid, const JobClass& cls,
                                                      std::span<const std::uint32_t> nodes);

}  // namespace gantry::sched
