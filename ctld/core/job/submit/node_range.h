// How many nodes a partition lets a job have.
#pragma once

#include "ctld/core/state/state.h"

namespace gantry::core {

Result<void> check_node_range(const Partition& partition, const JobShape& shape);

// Brings a range of nodes into what the partition allows, where both have some number in common.
void cap_nodes(const Partition& partition, JobShape& shape);

}  // namespace gantry::core
