// --gpus=N: on how many nodes a job gets its GPUs, and how many on each; see node_range.h.

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "ctld/core/job/submit/node_range.h"

namespace gantry::core {
namespace {

constexpr std::uint32_t kMostGpusOfJob = 1 << 20;

}  // namespace

Result<void> deal_gpus(const Context& ctx, const Partition& partition, JobShape& shape) {
  if (shape.gpus_in_all == 0) return {};
  const std::uint32_t all = shape.gpus_in_all;
  if (shape.gpu_share > 0 || shape.gpu_shards > 0 || !shape.gpu_slice.empty() ||
      all > kMostGpusOfJob)
    return fail(ErrorCode::invalid_argument,
                fmt::format("GPUs in all are 1 to {} whole ones", kMostGpusOfJob));
  const bool open = shape.min_nodes <= 1 && shape.max_nodes <= 1 && shape.gpus_per_node == all;
  if (open) {
    std::vector<std::uint32_t> counts;  // of the nodes that have some, the most first
    for (const sched::NodeChanged* node : ctx.rt.partition_nodes.at(partition.id.value()))
      if (node->gpus_when_well > 0)
        counts.push_back(static_cast<std::uint32_t>(node->gpus_when_well));
    std::sort(counts.begin(), counts.end(), std::greater<>());
    std::uint32_t nodes = std::max(1u, shape.min_nodes);
    while (nodes < counts.size() && nodes < all && counts[nodes - 1] < (all + nodes - 1) / nodes)
      ++nodes;
    // A job that no number of nodes holds is refused with the words of one that names one node.
    if (nodes > counts.size() || counts[nodes - 1] < (all + nodes - 1) / nodes) nodes = 1;
    shape.min_nodes = shape.max_nodes = nodes;
    shape.tasks = std::max(shape.tasks, nodes);
    shape.gpus_per_node = (all + nodes - 1) / nodes;
  }
  const std::uint32_t nodes = shape.min_nodes;
  if (nodes != shape.max_nodes || nodes > all || shape.gpus_per_node != (all + nodes - 1) / nodes)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} GPUs cannot be dealt to {} nodes", all, nodes));
  if (all % nodes == 0) shape.gpus_in_all = 0;
  return {};
}

}  // namespace gantry::core
