// Which of a node's GPUs each task of a step sees: the values of Slurm's --gpu-bind. Tasks and GPUs
// count from 0 on each node, GPUs in the order of CUDA_VISIBLE_DEVICES.
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
    none,      // every task sees all
    per_task,  // `count` GPUs for each task, in order
    single,    // one GPU, the next one after every `count` tasks
    map,       // task i sees the GPUs of set i
    closest,   // those nearest to the task's cores
  };
  Kind kind = Kind::none;
  std::uint32_t count = 1;
  std::vector<std::uint64_t> sets;  // bit g: GPU g. After the last one from the front again.
};

// "none", "per_task:2", "single:1", "map_gpu:0,1*2", "mask_gpu:0x3,0xc", "closest".
Result<GpuBind> parse_gpu_bind(std::string_view text);

// Ascending, but as they come with per_task. After the last GPU of `gpus` from the front again, so
// tasks share where there are too few. `distances`, for closest: of each GPU from the task's cores;
// equal ones are equally near, and where they are not known (none) all are. An error: `bind` names
// one that is not there.
Result<std::vector<std::size_t>> gpus_of_task(const GpuBind& bind, std::size_t task,
                                              std::size_t gpus,
                                              std::span<const std::uint32_t> distances = {});

}  // namespace gantry
