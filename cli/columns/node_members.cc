#include "cli/columns/node_members.h"

#include <algorithm>

namespace gantry::cli {

NodeMembers::NodeMembers(const std::vector<proto::NodeRow>& nodes) : nodes_(nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) places_.emplace(nodes[i].name, i);
}

const std::vector<const proto::NodeRow*>& NodeMembers::of(const proto::PartitionRow& partition) {
  same_again_ = asked_ && partition.nodes == names_;
  asked_ = true;
  if (same_again_) return members_;
  names_ = partition.nodes;
  std::vector<std::size_t> found;
  for (const std::string& name : names_)
    if (const auto it = places_.find(name); it != places_.end()) found.push_back(it->second);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  members_.clear();
  for (const std::size_t i : found) members_.push_back(&nodes_[i]);
  return members_;
}

}  // namespace gantry::cli
