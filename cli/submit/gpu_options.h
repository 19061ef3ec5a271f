// GPUs as Slurm's options ask for them: --gpus, --gpus-per-node, --gpus-per-task, --gres=gpu:...,
// --mem-per-gpu; and parts of a GPU, --gpus=0.5 or --gres=shard:2. They are kept as given, and
// worked into the job's shape when nodes and tasks are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/job/job_spec.h"
#include "common/result.h"

namespace gantry::cli {

struct GpuWish {
  std::optional<std::uint32_t> in_all, per_node, per_task;  // thousandths
  std::uint32_t shards = 0;                                 // on each node
  std::vector<GresCount> others;                            // of each node: --gres=NAME:N
  std::string model;  // as "a100:2" names it, or "h100|a100:2", the preferred first; lower case
  std::string slice;  // MIG profile, "1g.10gb"; then the numbers count slices
  std::optional<std::int64_t> memory_each;  // bytes of memory of the node for each GPU
};

// "2", "a100:2", "0.5": thousandths of GPUs, and their model into `wish`.
Result<std::uint32_t> parse_gpus(std::string_view text, GpuWish& wish);
// "gpu", "gpu:2", "gpu:a100:2", "mig:1g.10gb:2", "mig:1g.10gb:0.5", "gpu:1g.10gb:2", "shard:2",
// "fpga:1", "none", or several of them with commas.
Result<void> parse_gres(std::string_view text, GpuWish& wish);

// shape has its nodes and tasks. usage, invalid_argument: wishes that exclude each other, or cannot
// be dealt evenly to nodes.
Result<void> apply_gpus(const GpuWish& wish, JobShape& shape);

}  // namespace gantry::cli
