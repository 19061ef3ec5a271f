// The choice of nodes for a gang. Topology levels go from the widest to the narrowest, and each is
// a set of domains. Requests mean what they mean in Kueue's topology-aware scheduling and Slurm's
// block plugin:
//
// - required at a level: all nodes lie in one domain of it, or of a narrower level if a domain
//   there has enough; of these domains the tightest is taken, then the one of the lowest index.
// - preferred: as required; else one domain of a wider level; else several domains, the largest
//   first, and the tightest that suffices as the last one.
// - balanced: the fewest domains of the level over which the nodes can be spread evenly (one more
//   or less); if there are none, as preferred.
// - no request: the order of place.h, which fills the most fragmented domains first. Within a
//   domain the nodes are chosen by the next narrower level in the same way.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/queue/queue.h"

namespace gantry::sched {

// Does what choose_nodes() does, by the class's topology request.
std::optional<std::vector<Share>> choose_places(const Grid& grid, const JobClass& cls,
                                                std::span<const Candidate> candidates);

// Splits the nodes by domain of the level that the request names. Unless the request requires one
// domain, the last list holds all nodes. For callers that compare the costs of domains.
std::vector<std::vector<std::uint32_t>> split_by_wish(const Grid& grid, const JobClass& cls,
                                                      std::span<const std::uint32_t> nodes);

}  // namespace gantry::sched
