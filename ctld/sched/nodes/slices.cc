#include "ctld/sched/nodes/slices.h"

#include <algorithm>
#include <utility>

namespace gantry::sched {

void ClusterSlices::resize(std::size_t nodes) {
  nodes_.resize(nodes);
  with_parts_.resize(nodes);
}

void ClusterSlices::set(std::uint32_t n, std::span<const GpuView> devices,
                        const std::vector<MigGeometry>& geometries) {
  const bool had_slices = !nodes_[n].gpus().empty();
  nodes_[n].set(devices, geometries, shapes_);
  with_parts_.clear(n);
  fleet_old_ = fleet_old_ || had_slices || !nodes_[n].gpus().empty();
}

void ClusterSlices::mark(std::uint32_t n, std::span<const GpuGrant> devices, PartitionId tenant,
                         bool taken) {
  MigNode& node = nodes_[n];
  node.mark(devices, tenant, taken);
  if (node.has_parts())
    with_parts_.set(n);
  else
    with_parts_.clear(n);
  for (const GpuGrant& d : devices)
    if (const auto at = fleet_old_ ? std::nullopt : node.find(d))
      fleet_.put(node.gpus()[at->first].fleet, node.gpus()[at->first].state);
}

void ClusterSlices::settle() {
  if (!std::exchange(fleet_old_, false)) return;
  fleet_.build(nodes_, shapes_);
}

void ClusterSlices::hold(std::uint32_t n, std::size_t gpu, const MigNode::Hold& hold,
                         std::vector<MigUsed> used) {
  nodes_[n].hold(gpu, hold, std::move(used));
  if (std::find(held_nodes_.begin(), held_nodes_.end(), n) == held_nodes_.end())
    held_nodes_.push_back(n);
}

void ClusterSlices::drop_holds() {
  for (const std::uint32_t n : held_nodes_) nodes_[n].drop_holds();
  held_nodes_.clear();
}

}  // namespace gantry::sched
