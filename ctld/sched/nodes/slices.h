// GPUs in MIG mode of all nodes: the slices that jobs have, the GPUs that suit a request best, and
// the places that the current plan keeps for jobs. mig_node.h decides what is legal on the GPUs of
// one node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/gpu/mig_fleet.h"
#include "ctld/sched/gpu/mig_node.h"

namespace gantry::sched {

class ClusterSlices {
 public:
  void resize(std::size_t nodes);
  // The node is new or changed. Afterwards no job has a slice of it.
  void set(std::uint32_t n, std::span<const GpuView> devices,
           const std::vector<MigGeometry>& geometries);
  void mark(std::uint32_t n, std::span<const GpuGrant> devices, PartitionId tenant, bool taken);

  [[nodiscard]] const MigNode& on(std::uint32_t n) const { return nodes_[n]; }
  [[nodiscard]] const MigShapes& shapes() const { return shapes_; }
  void settle();  // call it before a plan: it makes fleet() agree with the nodes
  [[nodiscard]] const MigFleet& fleet() const { return fleet_; }
  // Calls f(node) for nodes with slices that jobs share, until it returns true. Returns true if f
  // did.
  template <class F>
  bool any_with_parts(F&& f) const {
    for (std::size_t w = 0; w < with_parts_.words(); ++w)
      if (any_in_word(with_parts_.word(w), w, f)) return true;
    return false;
  }

  // ---- places that are kept for jobs until drop_holds(); see MigNode
  void hold(std::uint32_t n, std::size_t gpu, const MigNode::Hold& hold, std::vector<MigUsed> used);
  // Sets until when slices that were marked since hold() are in use.
  void lasts(std::uint32_t n, std::span<const GpuGrant> devices, Instant until) {
    if (!held_nodes_.empty()) nodes_[n].lasts(devices, until);
  }
  void drop_holds();
  [[nodiscard]] const std::vector<std::uint32_t>& held_nodes() const { return held_nodes_; }

 private:
  std::vector<MigNode> nodes_;
  MigShapes shapes_;
  MigFleet fleet_;
  bool fleet_old_ = false;
  Bits with_parts_;                        // nodes with slices of which jobs have parts
  std::vector<std::uint32_t> held_nodes_;  // nodes with places that are kept, each once
};

}  // namespace gantry::sched
