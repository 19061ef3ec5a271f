#include "ctld/core/job/submit/node_range.h"

#include <algorithm>

#include <fmt/core.h>
#include "ctld/core/state/node.h"

namespace gantry::core {

Result<void> check_node_range(const Partition& partition, const JobShape& shape) {
  const auto& most = partition.declared->max_nodes;
  if (most && shape.min_nodes > *most)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{} nodes are above the {} that partition {} allows for a job",
                            shape.min_nodes, *most, partition.name));
  if (const std::uint32_t least = partition.declared->min_nodes; shape.max_nodes < least)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{} nodes are below the {} that partition {} asks of a job",
                            shape.max_nodes, least, partition.name));
  return {};
}

void cap_nodes(const Partition& partition, JobShape& shape) {
  const auto& most = partition.declared->max_nodes;
  if (most && shape.min_nodes <= *most) shape.max_nodes = std::min(shape.max_nodes, *most);
  const std::uint32_t least = partition.declared->min_nodes;
  if (shape.max_nodes < least || shape.min_nodes >= least) return;
  shape.min_nodes = least;
  shape.tasks = std::max(shape.tasks, least);  // each node needs a task
}

}  // namespace gantry::core
