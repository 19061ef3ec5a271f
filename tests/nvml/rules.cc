#include "tests/nvml/rules.h"

#include <algorithm>

namespace gantry::fake {
namespace {

// Numbers GPU instances as hardware does: they number the halves, quarters and eighths of the
// memory like a heap, the upper half before the lower one.
std::uint32_t id_at(const GpuState& gpu, const ProfileModel& profile, std::uint32_t start) {
  const std::uint32_t parts = model_of(gpu).memory_slices / profile.memory_slices;
  if (parts == 1) return 0;
  if (parts == 2) return start == 0 ? 2 : 1;
  return parts - 1 + start / profile.memory_slices;
}

bool in_use(const GpuState& gpu, std::uint32_t instance, std::uint32_t compute) {
  return std::any_of(std::begin(gpu.processes), std::end(gpu.processes), [&](const auto& p) {
    return p.pid != 0 && p.gpu_instance == instance &&
           (compute == kNone || p.compute_instance == compute);
  });
}

}  // namespace

const ProfileModel* profile_by_index(const GpuState& gpu, std::uint32_t index) {
  for (const ProfileModel& profile : model_of(gpu).profiles)
    if (profile.index == index) return &profile;
  return nullptr;
}

const ProfileModel* profile_by_id(const GpuState& gpu, std::uint32_t id) {
  for (const ProfileModel& profile : model_of(gpu).profiles)
    if (profile.id == id) return &profile;
  return nullptr;
}

const ProfileModel& profile_of(const GpuState& gpu, const InstanceState& instance) {
  return model_of(gpu).profiles[instance.profile];
}

bool may_place(const GpuState& gpu, const ProfileModel& profile, std::uint32_t start) {
  std::uint32_t compute = profile.compute_slices, same = 0, media = 0;
  for (const InstanceState& one : gpu.instances) {
    if (one.live == 0) continue;
    const ProfileModel& other = profile_of(gpu, one);
    if (start < one.start + other.memory_slices && one.start < start + profile.memory_slices)
      return false;
    compute += other.compute_slices;
    same += other.id == profile.id ? 1 : 0;
    media += other.media ? 1 : 0;
  }
  return compute <= model_of(gpu).compute_slices && same < profile.most &&
         !(profile.media && media > 0);
}

Return create_instance(State& state, GpuState& gpu, std::uint32_t profile_id, std::uint32_t start,
                       InstanceState*& out) {
  if (gpu.mig_now == 0) return Return::not_supported;
  const ProfileModel* profile = profile_by_id(gpu, profile_id);
  if (profile == nullptr) return Return::invalid_argument;
  const auto& starts = profile->starts;
  if (std::find(starts.begin(), starts.end(), start) == starts.end())
    return Return::invalid_argument;
  if (!may_place(gpu, *profile, start)) return Return::insufficient_resources;
  for (InstanceState& one : gpu.instances) {
    if (one.live != 0) continue;
    one = {};
    one.live = 1;
    one.id = id_at(gpu, *profile, start);
    one.profile = static_cast<std::uint32_t>(profile - model_of(gpu).profiles.data());
    one.start = start;
    one.generation = static_cast<std::uint32_t>(++state.instances_made) & 0xFFFFFF;
    out = &one;
    return Return::success;
  }
  return Return::insufficient_resources;
}

Return destroy_instance(GpuState& gpu, InstanceState& instance) {
  for (const ComputeState& compute : instance.compute)
    if (compute.live != 0) return Return::in_use;
  if (in_use(gpu, instance.id, kNone)) return Return::in_use;
  instance = {};
  return Return::success;
}

const std::vector<ComputeProfile>& compute_profiles() {
  static const std::vector<ComputeProfile> all{
      {0, 0, 1}, {1, 1, 2}, {2, 2, 3}, {3, 3, 4}, {4, 4, 7}};
  return all;
}

std::uint32_t most_of(const ComputeProfile& profile, std::uint32_t slices_of_instance) {
  return slices_of_instance / profile.slices;
}

Return create_compute(State& state, GpuState& gpu, InstanceState& instance, std::uint32_t profile,
                      ComputeState*& out) {
  const std::uint32_t all = profile_of(gpu, instance).compute_slices;
  const auto& known = compute_profiles();
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const ComputeProfile& p) { return p.id == profile; });
  if (found == known.end() || found->slices > all) return Return::invalid_argument;
  std::uint32_t used = 0;
  for (const ComputeState& one : instance.compute)
    if (one.live != 0) used |= ((1u << one.slices) - 1) << one.start;
  std::uint32_t start = 0;
  const std::uint32_t mask = (1u << found->slices) - 1;
  while (start + found->slices <= all && (used & mask << start) != 0) ++start;
  if (start + found->slices > all) return Return::insufficient_resources;
  std::uint32_t id = 0;
  while (find_compute(instance, id) != nullptr) ++id;
  for (ComputeState& one : instance.compute) {
    if (one.live != 0) continue;
    one = {};
    one.live = 1;
    one.id = id;
    one.slices = found->slices;
    one.start = start;
    one.generation = static_cast<std::uint32_t>(++state.instances_made) & 0xFFFFFF;
    copy_text(one.uuid, make_uuid("MIG-", state.instances_made));
    out = &one;
    return Return::success;
  }
  return Return::insufficient_resources;
}

Return destroy_compute(GpuState& gpu, InstanceState& instance, ComputeState& compute) {
  if (in_use(gpu, instance.id, compute.id)) return Return::in_use;
  compute = {};
  return Return::success;
}

Return set_mig_mode(GpuState& gpu, bool on, Return& activation) {
  activation = Return::success;
  if (model_of(gpu).profiles.empty()) return Return::not_supported;
  gpu.mig_later = on ? 1 : 0;
  if (gpu.mig_later == gpu.mig_now) return Return::success;
  const bool busy = std::any_of(std::begin(gpu.instances), std::end(gpu.instances),
                                [](const InstanceState& one) { return one.live != 0; }) ||
                    std::any_of(std::begin(gpu.processes), std::end(gpu.processes),
                                [](const ProcessState& one) { return one.pid != 0; });
  if (busy)
    activation = Return::in_use;
  else if (model_of(gpu).architecture == Architecture::ampere)
    activation = Return::reset_required;
  else
    gpu.mig_now = gpu.mig_later;
  return Return::success;
}

void reset(GpuState& gpu) {
  for (InstanceState& one : gpu.instances) one = {};
  for (ProcessState& one : gpu.processes) one = {};
  gpu.mig_now = gpu.mig_later;
  gpu.lost = 0;
  gpu.utilization = gpu.memory_utilization = 0;
  gpu.memory_used = 0;
  gpu.clock_reasons = 0;
  gpu.power_mw = model_of(gpu).idle_mw;
  gpu.temperature = 34;
  gpu.ecc[0][0] = gpu.ecc[1][0] = 0;
  gpu.retired_pending = gpu.remap_pending = 0;
  gpu.recovery_action = 0;
}

std::uint64_t memory_used(const GpuState& gpu) {
  std::uint64_t sum = gpu.memory_used;
  for (const InstanceState& one : gpu.instances) sum += one.live != 0 ? one.memory_used : 0;
  for (const ProcessState& one : gpu.processes) sum += one.pid != 0 ? one.bytes : 0;
  return sum;
}

std::uint64_t memory_used(const GpuState& gpu, const InstanceState& instance) {
  std::uint64_t sum = instance.memory_used;
  for (const ProcessState& one : gpu.processes)
    if (one.pid != 0 && one.gpu_instance == instance.id) sum += one.bytes;
  return sum;
}

std::uint64_t memory_total(const GpuState& gpu, const InstanceState& instance) {
  return static_cast<std::uint64_t>(profile_of(gpu, instance).memory_mib) << 20;
}

InstanceState* find_instance(GpuState& gpu, std::uint32_t id) {
  for (InstanceState& one : gpu.instances)
    if (one.live != 0 && one.id == id) return &one;
  return nullptr;
}

ComputeState* find_compute(InstanceState& instance, std::uint32_t id) {
  for (ComputeState& one : instance.compute)
    if (one.live != 0 && one.id == id) return &one;
  return nullptr;
}

}  // namespace gantry::fake
