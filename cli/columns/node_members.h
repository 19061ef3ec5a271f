// Which of the listed nodes are a partition's. Partitions that have the same nodes one after the
// other, as tenants' queues often do, cost one search together.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/proto/cluster.h"

namespace gantry::cli {

class NodeMembers {
 public:
  // `nodes` has to outlive it.
  explicit NodeMembers(const std::vector<proto::NodeRow>& nodes);

  // In the order of the listing; valid until the next call.
  const std::vector<const proto::NodeRow*>& of(const proto::PartitionRow& partition);
  // Did the last call give the same nodes as the one before it?
  [[nodiscard]] bool same_again() const { return same_again_; }

 private:
  const std::vector<proto::NodeRow>& nodes_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<std::string> names_;  // of the last call
  std::vector<const proto::NodeRow*> members_;
  bool same_again_ = false;
  bool asked_ = false;
};

}  // namespace gantry::cli
