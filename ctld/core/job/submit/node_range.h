// How many nodes a partition lets a job have, and how its GPUs are dealt to them.
#pragma once

#include "common/job/job_shape.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct Partition;

Result<void> check_node_range(const Partition& partition, const JobShape& shape);

// Narrows a range of nodes to what the partition allows, if the two overlap.
void cap_nodes(const Partition& partition, JobShape& shape);

// Deals --gpus to nodes. Where the job leaves open to how many (JobShape::gpus_in_all on one node),
// it gets the fewest nodes on which the GPUs fit, spread as evenly as possible.
Result<void> deal_gpus(const Context& ctx, const Partition& partition, JobShape& shape);

}  // namespace gantry::core
