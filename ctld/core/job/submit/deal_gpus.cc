// --gpus=N: on how many nodes a job gets its GPUs, and how many on each; see node_range.h.

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "common/limits.h"
#include "ctld/core/context.h"
#include "ctld/core/job/submit/node_range.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/node.h"
#include "ctld/core/view_memory.h"

namespace gantry::core {
namespace {

constexpr std::uint32_t kMostGpusOfJob = 1 << 20;

tl::unexpected<Error> bad_deal(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

// With GPUs per task, the GPUs of a node follow from its tasks.
Result<void> check_by_task(const JobShape& shape) {
  const std::uint64_t tasks = std::max(shape.tasks, shape.min_nodes);
  const std::uint64_t nodes = std::max({1u, shape.min_nodes, shape.max_nodes});
  const std::uint64_t on_node = (tasks + nodes - 1) / nodes * shape.gpus_per_task;
  if (shape.gpus_in_all == tasks * shape.gpus_per_task && shape.gpus_per_node == on_node) return {};
  return bad_deal(fmt::format("{} tasks with {} GPUs each are not {} GPUs, {} on a node", tasks,
                              shape.gpus_per_task, shape.gpus_in_all, shape.gpus_per_node));
}

// Memory per GPU determines the job's memory; no other rule of memory may be given with it.
Result<void> check_memory(const JobShape& shape) {
  const std::int64_t gpus = std::max(shape.gpus_in_all, shape.gpus_per_node);
  if (shape.memory_per_gpu < 0 || shape.memory_per_gpu > kMaxMemoryBytes / gpus ||
      (shape.memory_per_gpu > 0 && shape.memory_per_cpu))
    return bad_deal(
        fmt::format("memory per GPU is up to {} bytes for all of them, and excludes memory "
                    "per core",
                    kMaxMemoryBytes));
  return {};
}

// How many of a job's GPUs the node can give it at most.
std::uint32_t gpus_for(const sched::NodeChanged& node, const JobShape& shape) {
  std::int64_t most = node.gpus_when_well;
  if (shape.memory_per_gpu > 0) most = std::min(most, node.memory / shape.memory_per_gpu);
  return static_cast<std::uint32_t>(std::max<std::int64_t>(most, 0));
}

}  // namespace

Result<void> deal_gpus(const Context& ctx, const Partition& partition, JobShape& shape) {
  if (shape.gpus_in_all == 0) {
    if (shape.memory_per_gpu == 0 && shape.gpus_per_task == 0) return {};
    return bad_deal(
        "memory per GPU and GPUs per task stand beside the number of all GPUs of the job");
  }
  const std::uint32_t all = shape.gpus_in_all;
  if (auto r = check_memory(shape); !r) return r;
  if (shape.gpu_share > 0 || shape.gpu_shards > 0 || !shape.gpu_slice.empty() ||
      all > kMostGpusOfJob)
    return bad_deal(fmt::format("GPUs in all are 1 to {} whole ones", kMostGpusOfJob));
  if (shape.memory_per_gpu > 0) shape.memory_per_node = shape.memory_per_gpu * shape.gpus_per_node;
  if (shape.gpus_per_task > 0) return check_by_task(shape);
  const bool open = shape.min_nodes <= 1 && shape.max_nodes <= 1 && shape.gpus_per_node == all;
  if (open) {
    std::vector<std::uint32_t> counts;  // GPUs of each node that has some, the most first
    for (const sched::NodeChanged* node : ctx.rt.views->partition_nodes.at(partition.id.value()))
      if (const std::uint32_t gpus = gpus_for(*node, shape); gpus > 0) counts.push_back(gpus);
    std::sort(counts.begin(), counts.end(), std::greater<>());
    std::uint32_t nodes = std::max(1u, shape.min_nodes);
    while (nodes < counts.size() && nodes < all && counts[nodes - 1] < (all + nodes - 1) / nodes)
      ++nodes;
    // A job that fits on no number of nodes is refused with the same words as a job on one node.
    if (nodes > counts.size() || counts[nodes - 1] < (all + nodes - 1) / nodes) nodes = 1;
    shape.min_nodes = shape.max_nodes = nodes;
    shape.tasks = std::max(shape.tasks, nodes);
    shape.gpus_per_node = (all + nodes - 1) / nodes;
  }
  const std::uint32_t nodes = shape.min_nodes;
  if (nodes != shape.max_nodes || nodes > all || shape.gpus_per_node != (all + nodes - 1) / nodes)
    return bad_deal(fmt::format("{} GPUs cannot be dealt to {} nodes", all, nodes));
  if (shape.memory_per_gpu > 0) shape.memory_per_node = shape.memory_per_gpu * shape.gpus_per_node;
  if (all % nodes == 0) shape.gpus_in_all = shape.memory_per_gpu = 0;
  return {};
}

}  // namespace gantry::core
