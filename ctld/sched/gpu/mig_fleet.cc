#include "ctld/sched/gpu/mig_fleet.h"

namespace gantry::sched {

void MigFleet::build(std::vector<MigNode>& nodes, const MigShapes& shapes) {
  parts_.clear();
  node_.clear();
  part_.clear();
  for (std::uint32_t n = 0; n < nodes.size(); ++n)
    for (std::size_t i = 0; i < nodes[n].gpus().size(); ++i) {
      nodes[n].number(i, static_cast<std::uint32_t>(node_.size()));
      node_.push_back(n);
      part_.push_back(nodes[n].gpus()[i].shape->index);
    }
  if (node_.empty()) return;
  for (std::size_t s = 0; s < shapes.size(); ++s)
    parts_.push_back({&shapes[s], MigPool(shapes[s].order, node_.size())});
  for (const MigNode& node : nodes)
    for (const MigNode::Gpu& gpu : node.gpus()) put(gpu.fleet, gpu.state);
}

}  // namespace gantry::sched
