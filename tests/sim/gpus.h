// The GPUs of simulated machines, for histories with gantry_sim --gpus yes: some are in MIG mode,
// some nodes let jobs of a tenant share them, jobs ask for whole GPUs, slices and parts, and
// drivers report faults.
#pragma once

#include <string>

#include "common/job/job_shape.h"
#include "common/resources/gpu.h"
#include "tests/sim/random.h"
#include "tests/sim/settings.h"

namespace gantry::sim {

// The settings for GPUs are drawn after those of every history, so that histories without GPUs do
// not depend on them.
void draw_for_gpus(Random& random, Settings& settings);
// Draws the GPUs that the machine's driver reports. The inventory is empty if no GPU is declared.
GpuInventory draw_inventory(Random& random, const NodeConfig& node);
// Asks for whole GPUs, slices, a part, shards, or no GPU.
void draw_gpus_of(Random& random, JobShape& shape);

// Makes a fault of one of its GPUs, or of the whole node; returns false if the chosen GPU has one
// already.
bool break_gpu(Random& random, GpuInventory& gpus, Instant now);
bool repair_gpus(GpuInventory& gpus);  // returns false if nothing was broken

// Returns why the machine cannot give both at a time, by the rules of the driver alone, or "".
std::string conflict(const GpuInventory& gpus, const GpuGrant& mine, const GpuGrant& theirs,
                     bool same_tenant);
// Returns why there is no such device or why it cannot be partitioned so, or "".
std::string impossible(const GpuInventory& gpus, const GpuGrant& grant);

}  // namespace gantry::sim
