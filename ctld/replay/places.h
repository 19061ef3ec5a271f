// Whether anybody could have made room for a claim: the proof behind "no place" in the measures.
//
// A claim within the nominal quota is met by jobs of tenants that exceed theirs. Such a tenant
// gives up one job after the other for as long as it exceeds its quota, so what it loses without
// the largest of these jobs is less than what it exceeds by. Where no such set of jobs frees the
// nodes that a claim needs, no planner can meet it: on the other nodes stand jobs of tenants within
// their quota (its own as well), or jobs that may not be preempted. The search looks at every set.
// Where that would take too long the answer is true, so "false" is a proof.
#pragma once

#include <cstdint>
#include <vector>

namespace gantry::replay {

struct HeldUnits {  // by a job that may be preempted, on one node
  std::uint32_t node = 0;
  std::uint32_t tenant = 0;
  std::int64_t units = 0;   // there
  std::int64_t of_job = 0;  // on all its nodes
  std::uint32_t job = 0;
};

// `room`: free units by node, with what is on its way out. `excess`: units that each tenant uses
// beyond its nominal quota. The job needs `each` on so many `nodes`.
bool could_have_place(const std::vector<std::int64_t>& room, const std::vector<HeldUnits>& held,
                      const std::vector<std::int64_t>& excess, std::uint32_t nodes,
                      std::int64_t each);

}  // namespace gantry::replay
