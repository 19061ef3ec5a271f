// All GPUs of the cluster that are in MIG mode, by how well they suit a slice: a search gets the
// best one first (mig_place.h), on whatever node, without looking at the others. For each GPU, the
// caller checks whether its node may be used and what is kept there for other jobs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ctld/sched/gpu/mig_node.h"

namespace gantry::sched {

class MigFleet {
 public:
  // Numbers every GPU of the nodes, with its present state.
  void build(std::vector<MigNode>& nodes, const MigShapes& shapes);
  void put(std::uint32_t gpu, MigState state) { parts_[part_[gpu]].pool.put(gpu, state); }
  [[nodiscard]] bool empty() const { return node_.empty(); }

  // Calls f(node) for GPUs on which the profile fits, the best first, until f returns true. Returns
  // true if f did. A node may come several times.
  template <class F>
  bool any(std::string_view profile, F&& f) const {
    for (const Part& part : parts_)
      if (const auto p = part.shape->table.profile_named(profile))
        if (part.pool.any(*p, nullptr, [&](std::uint32_t g) { return f(node_[g]); })) return true;
    return false;
  }

 private:
  struct Part {  // GPUs of one geometry
    const MigShapes::Shape* shape;
    MigPool pool;
  };
  std::vector<Part> parts_;          // by shape
  std::vector<std::uint32_t> node_;  // node of each GPU
  std::vector<std::uint32_t> part_;  // part of each GPU
};

}  // namespace gantry::sched
