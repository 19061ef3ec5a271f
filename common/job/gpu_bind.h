// Decides which of a node's GPUs each task of a step sees, from the values of Slurm's --gpu-bind.
// Tasks and GPUs count from 0 on each node, GPUs in the order of CUDA_VISIBLE_DEVICES.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry {

struct GpuBind {
  enum class Kind : std::uint8_t {
    none,      // every task sees all GPUs
    per_task,  // `count` GPUs for each task, in order
    single,    // one GPU, the next one after every `count` tasks
    map,       // task i sees the GPUs of set i
    closest,   // those nearest to the task's cores
  };
  Kind kind = Kind::none;
  std::uint32_t count = 1;
  // Bit g stands for GPU g; after the last set the first follows again.
  std::vector<std::uint64_t> sets;
};

// Parses "none", "per_task:2", "single:1", "map_gpu:0,1*2", "mask_gpu:0x3,0xc" or "closest".
Result<GpuBind> parse_gpu_bind(std::string_view text);

// The places of the task's GPUs in `gpus`: ascending, except for per_task, where they are in the
// order in which they are dealt. After the last GPU the first one follows again, so tasks share
// GPUs if there are too few. `distances` is for closest: the distance of each GPU from the task's
// cores; if it is empty, all GPUs count as equally near. It is an error if `bind` names a GPU that
// does not exist.
Result<std::vector<std::size_t>> gpus_of_task(const GpuBind& bind, std::size_t task,
                                              std::size_t gpus,
                                              std::span<const std::uint32_t> distances = {});

}  // namespace gantry
