// Chooses the GPUs of a node that a job gets: those closest to each other, so that a group linked
// by NVLink stays together and what is left for other jobs is worth as much as possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ctld/sched/change.h"

namespace gantry::sched {

// `count` of the devices that are whole and not taken (by index), ascending. The best group has the
// most NVLinks inside, then the fewest NUMA nodes, then the fewest links to free devices that stay
// behind, then the lowest indices. Of up to kExactGpus free devices, it is the best of all groups
// (at most 70). Of more (nodes have at most 64), it is the best of those that grow from each
// possible first device, each time by the device with the most links to those chosen, then of the
// same NUMA node, then of the lowest index: O(count * devices^2). Fewer than `count` free: our bug.
inline constexpr std::size_t kExactGpus = 8;
std::vector<std::uint16_t> choose_gpus(std::span<const GpuView> devices,
                                       const std::vector<bool>& taken, std::uint32_t count);

}  // namespace gantry::sched
