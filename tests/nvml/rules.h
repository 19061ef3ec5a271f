// What a GPU of the stand-in lets be done to it: the rules of MIG as hardware and driver have them.
// All with the state's lock held.
#pragma once

#include "noded/gpu/nvml/nvml_types.h"
#include "tests/nvml/state.h"

namespace gantry::fake {

using gpu::nvml::Return;

const ProfileModel* profile_by_index(const GpuState& gpu, std::uint32_t index);
const ProfileModel* profile_by_id(const GpuState& gpu, std::uint32_t id);
const ProfileModel& profile_of(const GpuState& gpu, const InstanceState& instance);

// How many more instances of a profile would fit, in any order of placements left.
bool may_place(const GpuState& gpu, const ProfileModel& profile, std::uint32_t start);

Return create_instance(State& state, GpuState& gpu, std::uint32_t profile_id, std::uint32_t start,
                       InstanceState*& out);
Return destroy_instance(GpuState& gpu, InstanceState& instance);  // in_use with compute instances

// Compute profiles are named by NVML's index; their ids are the same numbers here as on hardware.
struct ComputeProfile {
  std::uint32_t index, id, slices;
};
const std::vector<ComputeProfile>& compute_profiles();
std::uint32_t most_of(const ComputeProfile& profile, std::uint32_t slices_of_instance);
Return create_compute(State& state, GpuState& gpu, InstanceState& instance, std::uint32_t profile,
                      ComputeState*& out);
Return destroy_compute(GpuState& gpu, InstanceState& instance, ComputeState& compute);

// Ampere changes its mode at the next reset, later ones at once if nothing uses the GPU.
Return set_mig_mode(GpuState& gpu, bool on, Return& activation);
// Instances, processes, faults and errors since the last reset are gone; a pending mode is now.
void reset(GpuState& gpu);

std::uint64_t memory_used(const GpuState& gpu);
std::uint64_t memory_used(const GpuState& gpu, const InstanceState& instance);
std::uint64_t memory_total(const GpuState& gpu, const InstanceState& instance);

InstanceState* find_instance(GpuState& gpu, std::uint32_t id);
ComputeState* find_compute(InstanceState& instance, std::uint32_t id);

}  // namespace gantry::fake
