// GPUs of simulated machines, in histories that have them (gantry_sim --gpus
// yes): some in MIG mode, nodes whose GPUs jobs of one tenant may share, jobs
// that ask for whole ones, slices and parts, and faults that a driver tells of.
#pragma once

#include <string>

#include "common/job/job_shape.h"
#include "common/resources/gpu.h"
#include "tests/sim/random.h"
#include "tests/sim/settings.h"

namespace gantry::sim {

// After everything else has been drawn: histories without GPUs are what they
// were.
void draw_for_gpus(Random& random, Settings& settings);
// What the machine's driver says; nothing declared: nothing.
GpuInventory draw_inventory(Random& random, const NodeConfig& node);
// Whole GPUs, slices, a part or shards, or none.
void draw_gpus_of(Random& random, JobShape& shape);

// A fault of one of its GPUs, or of the whole node; false: that one has one
// already.
bool break_gpu(Random& random, GpuInventory& gpus, Instant now);
bool repair_gpus(GpuInventory& gpus);  // false: nothing was broken

// Why the machine cannot give both at a time, by the rules of the driver alone;
// "": it can.
std::string conflict(const GpuInventory& gpus, const GpuGrant& mine, const GpuGrant& theirs,
                     bool same_tenant);
// Why there is no such device, or it cannot be cut so; "": there is.
std::string impossible(const GpuInventory& gpus, const GpuGrant& grant);

}  // namespace gantry::sim
