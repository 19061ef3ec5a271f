// Whether anybody could have made room for a claim: the proof behind "no place" in the measures.
//
// A claim within the nominal quota is met by jobs of tenants that exceed theirs. Where no set of
// these frees the nodes that the job needs, since jobs of tenants within their quota (its own as
// well), or jobs that may not be preempted, stand on every one, no planner can meet it. What is
// counted here is more than could really be freed: of each tenant, on each node by itself, as much
// as it exceeds by and a last job that takes it below. So "false" is a proof, and "true" is none.
#pragma once

#include <cstdint>
#include <vector>

namespace gantry::replay {

struct HeldUnits {  // by a job that may be preempted, on one node
  std::uint32_t node = 0;
  std::uint32_t tenant = 0;
  std::int64_t units = 0;   // there
  std::int64_t of_job = 0;  // on all its nodes
};

// `room`: free units by node, with what is on its way out. `excess`: units that each tenant uses
// beyond its nominal quota. The job needs `each` on so many `nodes`.
bool could_have_place(const std::vector<std::int64_t>& room, const std::vector<HeldUnits>& held,
                      const std::vector<std::int64_t>& excess, std::uint32_t nodes,
                      std::int64_t each);

}  // namespace gantry::replay
