// Operations on a GPU of the stand-in, with the rules of MIG that hardware and driver have. All are
// called with the state's lock held.
#pragma once

#include "noded/gpu/nvml/nvml_types.h"
#include "tests/nvml/state.h"

namespace gantry::fake {

using gpu::nvml::Return;

const ProfileModel* profile_by_index(const GpuState& gpu, std::uint32_t index);
const ProfileModel* profile_by_id(const GpuState& gpu, std::uint32_t id);
const ProfileModel& profile_of(const GpuState& gpu, const InstanceState& instance);

// Returns true if an instance of this profile can be made at `start` now.
bool may_place(const GpuState& gpu, const ProfileModel& profile, std::uint32_t start);

Return create_instance(State& state, GpuState& gpu, std::uint32_t profile_id, std::uint32_t start,
                       InstanceState*& out);
// returns in_use if it has compute instances
Return destroy_instance(GpuState& gpu, InstanceState& instance);

// A compute profile is named by NVML's index; its id is the same number, as on hardware.
struct ComputeProfile {
  std::uint32_t index, id, slices;
};
const std::vector<ComputeProfile>& compute_profiles();
std::uint32_t most_of(const ComputeProfile& profile, std::uint32_t slices_of_instance);
Return create_compute(State& state, GpuState& gpu, InstanceState& instance, std::uint32_t profile,
                      ComputeState*& out);
Return destroy_compute(GpuState& gpu, InstanceState& instance, ComputeState& compute);

// Ampere GPUs change their mode at the next reset; later models at once if nothing uses the GPU.
Return set_mig_mode(GpuState& gpu, bool on, Return& activation);
// Removes instances, processes, faults and the errors since the last reset; a pending mode takes
// effect.
void reset(GpuState& gpu);

std::uint64_t memory_used(const GpuState& gpu);
std::uint64_t memory_used(const GpuState& gpu, const InstanceState& instance);
std::uint64_t memory_total(const GpuState& gpu, const InstanceState& instance);

InstanceState* find_instance(GpuState& gpu, std::uint32_t id);
ComputeState* find_compute(InstanceState& instance, std::uint32_t id);

}  // namespace gantry::fake
