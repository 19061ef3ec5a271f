// Which CPUs, GPUs, parts of GPUs and other resources of a node a job gets, of those that nobody
// has. Slices of GPUs in MIG mode: mig_node.h. Fewer free than asked for is our bug, where a
// function does not say otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ctld/sched/nodes/grid.h"

namespace gantry::sched {

// `count` free CPUs: within one socket if they fit, then the socket with the fewest that do; else
// the lowest.
std::vector<std::uint16_t> choose_cpus(const GridNode& node, std::int32_t count);

// As many whole GPUs: gpu_choice.h. A node that was told no devices has numbers.
std::vector<GpuGrant> choose_devices(const GridNode& node, std::int32_t count);

// Whether the node has devices for the demand, beyond the numbers: parts lie on the tenant's own
// GPUs or on ones that nobody has, whole ones are not shared.
bool has_free_devices(const Grid& grid, std::uint32_t n, const Demand& demand, PartitionId tenant);

// That part of a GPU: beside others of the tenant if it fits, on the fullest such GPU.
GpuGrant choose_part(const GridNode& node, DevicePart part, PartitionId tenant);

// As many of each name, the first that are free.
std::vector<GresGrant> choose_gres(const GridNode& node, std::span<const GresCount> wanted);

}  // namespace gantry::sched
