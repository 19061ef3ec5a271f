// Finds listed partitions with the same nodes, and nodes in the same partitions. Listings are made
// from this, so that no list of names is made or sent twice. A thousand tenants that share
// ten thousand nodes are ten million pairs of a node and a partition, but one set of nodes.
//
// make_queues() derives it anew whenever the nodes of partitions change. That costs one walk over
// all nodes of all partitions; the memory grows with nodes, partitions and different sets, not with
// pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "common/types.h"

namespace gantry::core {

struct State;

class NodeSets {
 public:
  NodeSets() = default;
  explicit NodeSets(const State& state);

  // Listed partitions are those in State::partition_order, listed nodes those in State::node_order.
  [[nodiscard]] bool listed(NodeId id) const { return place(place_of_node_, id) != kNone; }
  [[nodiscard]] bool listed(PartitionId id) const { return place(place_of_part_, id) != kNone; }
  // The position among the listed ones, in configuration order, from 0.
  [[nodiscard]] std::uint32_t place_of(NodeId id) const { return place(place_of_node_, id); }
  [[nodiscard]] std::uint32_t place_of(PartitionId id) const { return place(place_of_part_, id); }

  // Listed partitions with the same number have the same nodes.
  [[nodiscard]] std::uint32_t set_of(PartitionId id) const { return set_of_.at(id.value()); }

  // Nodes with the same number are in the same listed partitions.
  [[nodiscard]] std::uint32_t group_of(NodeId id) const { return group_of_.at(id.value()); }
  [[nodiscard]] std::size_t groups() const { return groups_.size(); }
  // The partitions that the group's nodes are in, in configuration order.
  [[nodiscard]] std::vector<PartitionId> partitions_of(std::uint32_t group) const;

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  // Makes the group's partitions those of `set` plus those of group `rest`. Group 0 is in no
  // partition.
  struct Group {
    std::uint32_t rest = 0;
    std::uint32_t set = 0;
  };
  template <class Id>
  [[nodiscard]] static std::uint32_t place(const std::vector<std::uint32_t>& places, Id id) {
    return id.value() < places.size() ? places[id.value()] : kNone;
  }
  void find_sets(const State& state);
  void find_groups(const State& state);

  std::vector<std::uint32_t> place_of_node_, place_of_part_;  // by id
  std::vector<std::uint32_t> set_of_;                         // by PartitionId
  std::vector<std::vector<PartitionId>> sets_;  // partitions with the same nodes, in order
  std::vector<std::uint32_t> group_of_;         // by NodeId
  std::vector<Group> groups_;
};

}  // namespace gantry::core
