// Which GPUs of a node a job gets: those that are closest to each other, so that a group which has
// NVLink among itself stays together and what is left for others is worth as much as possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ctld/sched/change.h"

namespace gantry::sched {

// `count` of those that are whole and not taken (by index), ascending: the group with the most
// NVLinks inside, then with the fewest NUMA nodes, then whose links to free devices that stay
// behind are fewest, then with the lowest indices. Of up to kExactGpus free ones that is the best
// group there is, at most 70 are looked at. Of more (nodes have at most 64) the best of those that
// grow from each possible first device, by the one with the most links to those chosen, then of the
// same NUMA node, then of the lowest index: O(count * devices^2). Fewer than `count` free: our bug.
inline constexpr std::size_t kExactGpus = 8;
std::vector<std::uint16_t> choose_gpus(std::span<const GpuView> devices,
                                       const std::vector<bool>& taken, std::uint32_t count);

}  // namespace gantry::sched
