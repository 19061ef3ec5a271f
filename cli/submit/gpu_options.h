// GPUs as Slurm's options ask for them: --gpus, --gpus-per-node, --gpus-per-task, --gres=gpu:...,
// --mem-per-gpu; and parts of a GPU: --gpus=0.5 or --gres=shard:2. The amounts are kept as given,
// and become part of the job's shape when the numbers of nodes and tasks are known.
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
  std::vector<GresCount> others;                            // --gres=NAME:N, on each node
  // Model in "a100:2", or models in "h100|a100:2", the preferred one first; lower case.
  std::string model;
  std::string slice;  // MIG profile, "1g.10gb"; if set, the numbers count slices
  std::optional<std::int64_t> memory_each;  // bytes of the node's memory for each GPU
};

// Reads "2", "a100:2" or "0.5". Returns thousandths of GPUs; the model goes into `wish`.
Result<std::uint32_t> parse_gpus(std::string_view text, GpuWish& wish);
// Reads "gpu", "gpu:2", "gpu:a100:2", "mig:1g.10gb:2", "mig:1g.10gb:0.5", "gpu:1g.10gb:2",
// "shard:2", "fpga:1", "none", or several of them separated by commas.
Result<void> parse_gres(std::string_view text, GpuWish& wish);

// Adds the GPUs to a shape that already has its nodes and tasks. The errors are usage or
// invalid_argument: the options exclude each other, or the GPUs cannot be divided evenly among the
// nodes. `nodes_open`: the job does not give a number of nodes.
Result<void> apply_gpus(const GpuWish& wish, bool nodes_open, JobShape& shape);

}  // namespace gantry::cli
