// Chooses the CPUs, GPUs, parts of GPUs and other resources of a node that a job gets; only free
// ones are given. Slices of GPUs in MIG mode are chosen by mig_node.h. Asserts that enough are
// free, unless a function's comment differs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ctld/sched/nodes/grid.h"

namespace gantry::sched {

// `count` free CPUs: of one socket if they fit there (of the socket with the fewest free ones that
// suffices), else the lowest ones.
std::vector<std::uint16_t> choose_cpus(const GridNode& node, std::int32_t count);

// `count` whole GPUs, chosen by gpu_choice.h. If the node reported no devices, they are numbered
// from 0.
std::vector<GpuGrant> choose_devices(const GridNode& node, std::int32_t count);

// Whether the node has devices for the demand, beyond the counts: a part of a GPU needs a GPU that
// the tenant shares or that nobody uses; whole GPUs must not be shared.
bool has_free_devices(const Grid& grid, std::uint32_t n, const Demand& demand, PartitionId tenant);

// A part of a GPU: of the fullest GPU that the tenant shares and that has room; else of a free GPU.
GpuGrant choose_part(const GridNode& node, DevicePart part, PartitionId tenant);

// For each name, as many resources as asked for: the first that are free.
std::vector<GresGrant> choose_gres(const GridNode& node, std::span<const GresCount> wanted);

}  // namespace gantry::sched
