// Which GPUs of a node a job gets: those that are closest to each other, so that a group which has
// NVLink among itself stays together and what is left for others is worth as much as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ctld/sched/change.h"

namespace gantry::sched {

// `count` of those that are whole and not taken (by index), ascending. Grown from each possible
// first device, adding the one with the most NVLinks to those chosen, then of the same NUMA node,
// then of the lowest index; of these groups the one with the most links, then with the fewest NUMA
// nodes, then whose links to free devices that stay behind are fewest. O(count * devices^2); nodes
// have at most 64. Fewer than `count` free: our bug.
std::vector<std::uint16_t> choose_gpus(std::span<const GpuView> devices,
                                       const std::vector<bool>& taken, std::uint32_t count);

}  // namespace gantry::sched
