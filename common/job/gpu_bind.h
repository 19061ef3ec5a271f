// Which of a node's GPUs each task of a step sees: the values of Slurm's --gpu-bind. Tasks and GPUs
// count from 0 on each node, GPUs in the order of CUDA_VISIBLE_DEVICES.
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

// What steps of a job go by unless they say otherwise, as in Slurm: sbatch --gpu-bind sets it.
inline constexpr const char* kGpuBindVariable = "SLURM_GPU_BIND";

struct GpuBind {
  enum class Kind : std::uint8_t {
    none = 0,      // every task sees all
    per_task = 1,  // `count` GPUs for each task, in order
    single = 2,    // one GPU, the next one after every `count` tasks
    map = 3,       // task i sees the GPUs of set i
    closest = 4,   // those nearest to the task's cores
  };
  Kind kind = Kind::none;
  std::uint32_t count = 1;
  std::vector<std::uint64_t> sets;  // bit g: GPU g. After the last one from the front again.
  friend bool operator==(const GpuBind&, const GpuBind&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "kind", s.kind);
    v(2, "count", s.count);
    v(3, "sets", s.sets);
  }
};
constexpr auto enum_names(GpuBind::Kind) {
  using enum GpuBind::Kind;
  return std::array<std::pair<GpuBind::Kind, std::string_view>, 5>{{{none, "none"},
                                                                    {per_task, "per_task"},
                                                                    {single, "single"},
                                                                    {map, "map"},
                                                                    {closest, "closest"}}};
}

// Whether it is one that parse_gpu_bind() makes, so that gpus_of_task() can go by it; for one that
// came over the wire.
Result<void> check_gpu_bind(const GpuBind& bind);

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
