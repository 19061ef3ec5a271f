// Finds which of the listed nodes belong to a partition. Partitions that follow each other and have
// the same nodes, as tenants' queues often do, cost only one search.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/proto/cluster.h"

namespace gantry::cli {

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

}  // namespace gantry::cli
