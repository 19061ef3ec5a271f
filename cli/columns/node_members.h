// Which of the listed nodes belong to a partition, and which of them share a line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/columns/node_values.h"
#include "cli/table.h"

namespace gantry::cli {

// Finds which of the listed nodes belong to a partition. Partitions that follow each other and have
// the same nodes, as tenants' queues often do, cost only one search.
class NodeMembers {
 public:
  // `nodes` must outlive this object.
  explicit NodeMembers(const std::vector<proto::NodeRow>& nodes);

  // The nodes of the partition, in the order of the listing. The result is valid until the next
  // call.
  const std::vector<const proto::NodeRow*>& of(const proto::PartitionRow& partition);
  // True if the last call returned the same nodes as the one before.
  [[nodiscard]] bool same_again() const { return same_again_; }

 private:
  const std::vector<proto::NodeRow>& nodes_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<std::string> names_;  // names of the last call
  std::vector<const proto::NodeRow*> members_;
  bool same_again_ = false;
  bool asked_ = false;
};

// Groups of nodes with the same key, in the order of the listing. With `partitions` the groups lie
// within each of them, and with `show_empty` a partition without nodes has one without nodes.
// Without `partitions` each node is in one group. `nodes` and `partitions` must outlive the result.
std::vector<NodeGroup> group_nodes(const std::vector<proto::NodeRow>& nodes,
                                   const std::vector<proto::PartitionRow>* partitions,
                                   bool show_empty,
                                   const std::function<std::string(const NodeGroup& alone)>& key);

// True if a column of the layout shows a value of partitions. `columns` are of either family.
template <class Columns>
bool shows_partitions(const Layout& layout, const Columns& columns) {
  for (const Cell& cell : layout.cells)
    if (is_of_partition(columns[cell.column].letter)) return true;
  return false;
}
// The values of the layout's columns that nodes of one line have in common.
template <class Columns>
std::string node_key(const Layout& layout, const Columns& columns, const NodeGroup& alone) {
  std::string key;
  for (const Cell& cell : layout.cells) {
    const auto& column = columns[cell.column];
    if (!is_sum(column.letter) && !is_of_partition(column.letter)) column.put(key, alone);
    key += '\n';
  }
  return key;
}

}  // namespace gantry::cli
