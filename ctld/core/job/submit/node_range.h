// How many nodes a partition lets a job have, and how its GPUs are dealt to them.
#pragma once

#include "common/job/job_shape.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct Partition;

Result<void> check_node_range(const Partition& partition, const JobShape& shape);

// Brings a range of nodes into what the partition allows, where both have some number in common.
void cap_nodes(const Partition& partition, JobShape& shape);

// Deals --gpus to nodes. Where the job leaves open to how many (JobShape::gpus_in_all on one node),
// it gets the fewest nodes that can have them as even as may be.
Result<void> deal_gpus(const Context& ctx, const Partition& partition, JobShape& shape);

}  // namespace gantry::core
