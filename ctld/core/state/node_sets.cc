#include "ctld/core/state/node_sets.h"

#include <algorithm>
#include <unordered_map>

#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

std::uint64_t hash_of(const std::vector<NodeId>& nodes) {
  std::uint64_t hash = nodes.size();
  for (const NodeId id : nodes) hash = (hash ^ id.value()) * 0x9e37'79b9'7f4a'7c15 + (hash >> 29);
  return hash;
}

}  // namespace

NodeSets::NodeSets(const State& state)
    : place_of_node_(state.nodes.size(), kNone),
      place_of_part_(state.partitions.size(), kNone),
      set_of_(state.partitions.size(), kNone),
      group_of_(state.nodes.size(), 0),
      groups_(1) {
  std::uint32_t place = 0;
  for (const NodeId id : state.node_order) place_of_node_[id.value()] = place++;
  place = 0;
  for (const PartitionId id : state.partition_order) place_of_part_[id.value()] = place++;
  find_sets(state);
  find_groups(state);
}

void NodeSets::find_sets(const State& state) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_hash;
  for (const PartitionId id : state.partition_order) {
    const std::vector<NodeId>& nodes = state.partition(id).nodes;
    std::vector<std::uint32_t>& alike = by_hash[hash_of(nodes)];
    const auto known = std::find_if(alike.begin(), alike.end(), [&](std::uint32_t set) {
      return state.partition(sets_[set].front()).nodes == nodes;
    });
    std::uint32_t set = 0;
    if (known == alike.end()) {
      set = static_cast<std::uint32_t>(sets_.size());
      sets_.emplace_back();
      alike.push_back(set);
    } else {
      set = *known;
    }
    sets_[set].push_back(id);
    set_of_[id.value()] = set;
  }
}

// Each set splits every group that contains some of its nodes: those nodes move to a group of their
// own.
void NodeSets::find_groups(const State& state) {
  std::vector<std::uint32_t> moved(
      1, 0);  // by group: the new group for its nodes of this set; 0 = none yet
  std::vector<std::uint32_t> met;
  for (std::uint32_t set = 0; set < sets_.size(); ++set) {
    for (const NodeId id : state.partition(sets_[set].front()).nodes) {
      std::uint32_t& group = group_of_[id.value()];
      if (group != 0 && groups_[group].set == set) continue;  // the partition names it twice
      if (moved[group] == 0) {
        met.push_back(group);
        moved[group] = static_cast<std::uint32_t>(groups_.size());
        groups_.push_back({group, set});
        moved.push_back(0);
      }
      group = moved[group];
    }
    for (const std::uint32_t group : met) moved[group] = 0;
    met.clear();
  }
}

std::vector<PartitionId> NodeSets::partitions_of(std::uint32_t group) const {
  std::vector<PartitionId> out;
  for (; group != 0; group = groups_[group].rest) {
    const std::vector<PartitionId>& of_set = sets_[groups_[group].set];
    out.insert(out.end(), of_set.begin(), of_set.end());
  }
  std::sort(out.begin(), out.end(),
            [this](PartitionId a, PartitionId b) { return place_of(a) < place_of(b); });
  return out;
}

}  // namespace gantry::core
