#include "cli/columns/node_members.h"

#include <algorithm>
#include <map>

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

std::vector<NodeGroup> group_nodes(const std::vector<proto::NodeRow>& nodes,
                                   const std::vector<proto::PartitionRow>* partitions,
                                   bool show_empty,
                                   const std::function<std::string(const NodeGroup& alone)>& key) {
  const auto alike = [&](const std::vector<const proto::NodeRow*>& some) {
    std::vector<NodeGroup> out;
    std::map<std::string, std::size_t> known;
    for (const proto::NodeRow* node : some) {
      const NodeGroup alone{nullptr, {node}};
      const auto [at, fresh] = known.try_emplace(key(alone), out.size());
      if (fresh)
        out.push_back(alone);
      else
        out[at->second].nodes.push_back(node);
    }
    return out;
  };
  if (partitions == nullptr) {
    std::vector<const proto::NodeRow*> all;
    for (const proto::NodeRow& node : nodes) all.push_back(&node);
    return alike(all);
  }
  std::vector<NodeGroup> out;
  NodeMembers members(nodes);
  std::vector<NodeGroup> in;  // groups of the partition
  for (const proto::PartitionRow& partition : *partitions) {
    const auto& some = members.of(partition);
    if (!members.same_again()) in = alike(some);
    for (NodeGroup& group : in) group.partition = &partition;
    out.insert(out.end(), in.begin(), in.end());
    if (in.empty() && show_empty) out.push_back({&partition, {}});
  }
  return out;
}

}  // namespace gantry::cli
