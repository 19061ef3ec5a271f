// Decides which of a node's GPUs each task of a step sees, from the values of Slurm's --gpu-bind.
// Tasks and GPUs count from 0 on each node, GPUs in the order of CUDA_VISIBLE_DEVICES.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/result.h"

namespace gantry {

// The default for steps of a job, as in Slurm: sbatch --gpu-bind sets it.
inline constexpr const char* kGpuBindVariable = "SLURM_GPU_BIND";

struct GpuBind {
  enum class Kind : std::uint8_t {
    none = 0,      // every task sees all GPUs
    per_task = 1,  // `count` GPUs for each task, in order
    single = 2,    // one GPU, the next one after every `count` tasks
    map = 3,       // task i sees the GPUs of set i
    closest = 4,   // the GPUs nearest to the task's cores
  };
  Kind kind = Kind::none;
  std::uint32_t count = 1;
  // Bit g stands for GPU g; after the last set the first is used again.
  std::vector<std::uint64_t> sets;
  bool verbose = false;  // each task prints on its standard error which GPUs it sees
  friend bool operator==(const GpuBind&, const GpuBind&) = default;
  GANTRY_FIELDS(FIELD(1, kind), FIELD(2, count), FIELD(3, sets), FIELD(4, verbose))
};
GANTRY_NAMES(GpuBind::Kind, {none, "none"}, {per_task, "per_task"}, {single, "single"},
             {map, "map"}, {closest, "closest"})

// Whether it is one that parse_gpu_bind() makes, so that gpus_of_task() can go by it; for one that
// came over the wire.
Result<void> check_gpu_bind(const GpuBind& bind);

// Parses "none", "per_task:2", "single:1", "map_gpu:0,1*2", "mask_gpu:0x3,0xc" or "closest", each
// with "verbose," in front if tasks say what they see.
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
