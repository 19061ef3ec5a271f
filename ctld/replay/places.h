// Decides whether anybody could have made room for a claim. It is the proof behind "no place" in
// the measures.
//
// A claim within nominal quota is met by jobs of tenants that exceed theirs. Such a tenant gives up
// one job after another as long as it exceeds its quota; so what it loses, without the largest of
// these jobs, is less than its excess. If no such set of jobs frees the nodes that a claim needs,
// no planner can meet the claim: the other nodes are used by jobs of tenants within their quota
// (also its own), or by jobs that may not be preempted. The search tries every set. If that would
// take too long the answer is true, so "false" is a proof.
#pragma once

#include <cstdint>
#include <vector>

namespace gantry::replay {

struct HeldUnits {  // what a preemptible job holds on a node
  std::uint32_t node = 0;
  std::uint32_t tenant = 0;
  std::int64_t units = 0;   // on this node
  std::int64_t of_job = 0;  // on all nodes of the job
  std::uint32_t job = 0;
};

// `room` has the free units of each node, including those that are being freed. `excess` has the
// units that each tenant uses beyond its nominal quota. The job needs `each` units on this number
// of `nodes`.
bool could_have_place(const std::vector<std::int64_t>& room, const std::vector<HeldUnits>& held,
                      const std::vector<std::int64_t>& excess, std::uint32_t nodes,
                      std::int64_t each);

}  // namespace gantry::replay
