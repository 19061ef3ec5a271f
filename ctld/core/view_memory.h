// ViewMemory: nodes and partitions as the scheduler was told of them. Code that asks whether a
// request fits somewhere reads them too.
#pragma once

#include <vector>

#include "ctld/sched/change.h"
#include "ctld/sched/queue/geometry.h"

namespace gantry::core {

struct ViewMemory {
  std::vector<sched::NodeChanged> nodes;                                // by NodeId
  std::vector<sched::PartitionChanged> partitions;                      // by PartitionId
  std::vector<std::vector<const sched::NodeChanged*>> partition_nodes;  // by PartitionId
  sched::FitMemo fits;
};

}  // namespace gantry::core
