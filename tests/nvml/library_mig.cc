// Exported functions for MIG, with the rules of rules.h.
#include <algorithm>

#include "tests/nvml/library.h"

using namespace gantry::fake;  // NOLINT: these are C functions
namespace nvml = gantry::gpu::nvml;

namespace {

template <class Handle, class F>
Return on_handle(const char* call, Handle handle, F body) {
  const Entry entry(call, gpu_of(handle));
  if (!entry.ok()) return entry.refused();
  Target target = target_of(entry.state(), handle);
  return target.code == Return::success ? body(entry.state(), target) : target.code;
}

nvml::Device gpu_handle(std::uint32_t index) {
  return encode<nvml::Device>({HandleKind::gpu, index, 0, 0, 0});
}

nvml::GpuInstance instance_handle(std::uint32_t gpu, const InstanceState& one) {
  return encode<nvml::GpuInstance>({HandleKind::instance, gpu, one.id, 0, one.generation});
}

nvml::ComputeInstance compute_handle(std::uint32_t gpu, const InstanceState& instance,
                                     const ComputeState& one) {
  return encode<nvml::ComputeInstance>(
      {HandleKind::compute, gpu, instance.id, one.id, one.generation});
}

Return check_mig(const GpuState& gpu) {
  return gpu.mig_now != 0 ? Return::success : Return::not_supported;
}

}  // namespace

NVML_API Return nvmlDeviceGetMigMode(nvml::Device device, std::uint32_t* now,
                                     std::uint32_t* later) {
  return on_gpu("nvmlDeviceGetMigMode", device, now, [&](State&, const GpuState& gpu) {
    if (model_of(gpu).profiles.empty()) return Return::not_supported;
    *now = gpu.mig_now;
    *later = gpu.mig_later;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceSetMigMode(nvml::Device device, std::uint32_t mode, Return* activation) {
  return on_gpu("nvmlDeviceSetMigMode", device, activation,
                [&](State&, GpuState& gpu) { return set_mig_mode(gpu, mode == 1, *activation); });
}

NVML_API Return nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, std::uint32_t* count) {
  return on_gpu("nvmlDeviceGetMaxMigDeviceCount", device, count, [&](State&, const GpuState& gpu) {
    *count = model_of(gpu).compute_slices;
    return gpu.mig_now != 0 ? Return::success : Return::not_supported;
  });
}

NVML_API Return nvmlDeviceGetMigDeviceHandleByIndex(nvml::Device device, std::uint32_t index,
                                                    nvml::Device* out) {
  return on_gpu("nvmlDeviceGetMigDeviceHandleByIndex", device, out, [&](State&, GpuState& gpu) {
    if (const Return code = check_mig(gpu); code != Return::success) return code;
    for (const InstanceState& instance : gpu.instances) {
      if (instance.live == 0) continue;
      for (const ComputeState& one : instance.compute) {
        if (one.live == 0 || index-- > 0) continue;
        *out = encode<nvml::Device>(
            {HandleKind::mig, gpu_of(device), instance.id, one.id, one.generation});
        return Return::success;
      }
    }
    return Return::not_found;
  });
}

NVML_API Return nvmlDeviceGetGpuInstanceId(nvml::Device device, std::uint32_t* id) {
  return on_device("nvmlDeviceGetGpuInstanceId", device, id, [&](State&, const Target& target) {
    if (target.instance == nullptr) return Return::invalid_argument;
    *id = target.instance->id;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetComputeInstanceId(nvml::Device device, std::uint32_t* id) {
  return on_device("nvmlDeviceGetComputeInstanceId", device, id, [&](State&, const Target& target) {
    if (target.compute == nullptr) return Return::invalid_argument;
    *id = target.compute->id;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetGpuInstanceProfileInfo(nvml::Device device, std::uint32_t index,
                                                    nvml::GpuInstanceProfile* out) {
  return on_gpu("nvmlDeviceGetGpuInstanceProfileInfo", device, out, [&](State&, GpuState& gpu) {
    const ProfileModel* profile = profile_by_index(gpu, index);
    if (profile == nullptr) return Return::not_supported;
    *out = {};
    out->id = profile->id;
    out->slices = profile->compute_slices;
    out->instances = profile->most;
    out->memory_mib = profile->memory_mib;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetGpuInstanceProfileInfoV(nvml::Device device, std::uint32_t index,
                                                     nvml::GpuInstanceProfileV2* out) {
  return on_gpu("nvmlDeviceGetGpuInstanceProfileInfoV", device, out, [&](State&, GpuState& gpu) {
    if (out->version != nvml::version_of<nvml::GpuInstanceProfileV2>(2))
      return Return::argument_version_mismatch;
    const ProfileModel* profile = profile_by_index(gpu, index);
    if (profile == nullptr) return Return::not_supported;
    out->id = profile->id;
    out->p2p = 0;
    out->slices = profile->compute_slices;
    out->instances = profile->most;
    out->memory_mib = profile->memory_mib;
    return give_text("MIG " + std::string(profile->name), out->name, sizeof out->name);
  });
}

NVML_API Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvml::Device device, std::uint32_t id,
                                                              nvml::Placement* list,
                                                              std::uint32_t* count) {
  return on_gpu("nvmlDeviceGetGpuInstancePossiblePlacements_v2", device, count,
                [&](State&, const GpuState& gpu) {
                  const ProfileModel* profile = profile_by_id(gpu, id);
                  if (profile == nullptr) return Return::not_supported;
                  const auto all = static_cast<std::uint32_t>(profile->starts.size());
                  if (list != nullptr && *count < all) return Return::insufficient_size;
                  *count = all;
                  for (std::uint32_t i = 0; list != nullptr && i < all; ++i)
                    list[i] = {profile->starts[i], profile->memory_slices};
                  return Return::success;
                });
}
NVML_API Return nvmlDeviceGetGpuInstancePossiblePlacements(nvml::Device device, std::uint32_t id,
                                                           nvml::Placement* list,
                                                           std::uint32_t* count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, list, count);
}

NVML_API Return nvmlDeviceCreateGpuInstanceWithPlacement(nvml::Device device, std::uint32_t id,
                                                         const nvml::Placement* at,
                                                         nvml::GpuInstance* out) {
  return on_gpu("nvmlDeviceCreateGpuInstanceWithPlacement", device, out,
                [&](State& state, GpuState& gpu) {
                  const ProfileModel* profile = profile_by_id(gpu, id);
                  if (at == nullptr || (profile != nullptr && at->size != profile->memory_slices))
                    return Return::invalid_argument;
                  InstanceState* made = nullptr;
                  const Return code = create_instance(state, gpu, id, at->start, made);
                  if (code == Return::success) *out = instance_handle(gpu_of(device), *made);
                  return code;
                });
}

NVML_API Return nvmlGpuInstanceDestroy(nvml::GpuInstance instance) {
  return on_handle("nvmlGpuInstanceDestroy", instance, [](State&, Target& target) {
    return destroy_instance(*target.gpu, *target.instance);
  });
}

NVML_API Return nvmlDeviceGetGpuInstances(nvml::Device device, std::uint32_t id,
                                          nvml::GpuInstance* list, std::uint32_t* count) {
  return on_gpu("nvmlDeviceGetGpuInstances", device, count, [&](State&, GpuState& gpu) {
    if (const Return code = check_mig(gpu); code != Return::success) return code;
    if (profile_by_id(gpu, id) == nullptr || list == nullptr) return Return::invalid_argument;
    *count = 0;
    for (const InstanceState& one : gpu.instances)
      if (one.live != 0 && profile_of(gpu, one).id == id)
        list[(*count)++] = instance_handle(gpu_of(device), one);
    return Return::success;
  });
}

NVML_API Return nvmlGpuInstanceGetInfo(nvml::GpuInstance instance, nvml::GpuInstanceInfo* out) {
  return on_handle("nvmlGpuInstanceGetInfo", instance, [&](State&, Target& target) {
    const ProfileModel& profile = profile_of(*target.gpu, *target.instance);
    *out = {gpu_handle(target.gpu_index),
            target.instance->id,
            profile.id,
            {target.instance->start, profile.memory_slices}};
    return Return::success;
  });
}

NVML_API Return nvmlGpuInstanceGetComputeInstanceProfileInfo(nvml::GpuInstance instance,
                                                             std::uint32_t index,
                                                             std::uint32_t engine,
                                                             nvml::ComputeInstanceProfile* out) {
  return on_handle(
      "nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, [&](State&, Target& target) {
        const std::uint32_t slices = profile_of(*target.gpu, *target.instance).compute_slices;
        for (const ComputeProfile& profile : compute_profiles()) {
          if (profile.index != index || profile.slices > slices || engine != 0) continue;
          *out = {};
          out->id = profile.id;
          out->slices = profile.slices;
          out->instances = most_of(profile, slices);
          return Return::success;
        }
        return Return::not_supported;
      });
}

NVML_API Return nvmlGpuInstanceCreateComputeInstance(nvml::GpuInstance instance, std::uint32_t id,
                                                     nvml::ComputeInstance* out) {
  return on_handle(
      "nvmlGpuInstanceCreateComputeInstance", instance, [&](State& state, Target& target) {
        ComputeState* made = nullptr;
        const Return code = create_compute(state, *target.gpu, *target.instance, id, made);
        if (code == Return::success)
          *out = compute_handle(target.gpu_index, *target.instance, *made);
        return code;
      });
}

NVML_API Return nvmlComputeInstanceDestroy(nvml::ComputeInstance compute) {
  return on_handle("nvmlComputeInstanceDestroy", compute, [](State&, Target& target) {
    return destroy_compute(*target.gpu, *target.instance, *target.compute);
  });
}

NVML_API Return nvmlGpuInstanceGetComputeInstances(nvml::GpuInstance instance, std::uint32_t id,
                                                   nvml::ComputeInstance* list,
                                                   std::uint32_t* count) {
  return on_handle("nvmlGpuInstanceGetComputeInstances", instance, [&](State&, Target& target) {
    if (list == nullptr) return Return::invalid_argument;
    *count = 0;
    for (const ComputeProfile& profile : compute_profiles())
      for (const ComputeState& one : target.instance->compute)
        if (profile.id == id && one.live != 0 && one.slices == profile.slices)
          list[(*count)++] = compute_handle(target.gpu_index, *target.instance, one);
    return Return::success;
  });
}

NVML_API Return nvmlComputeInstanceGetInfo_v2(nvml::ComputeInstance compute,
                                              nvml::ComputeInstanceInfo* out) {
  return on_handle("nvmlComputeInstanceGetInfo_v2", compute, [&](State&, Target& target) {
    *out = {gpu_handle(target.gpu_index),
            instance_handle(target.gpu_index, *target.instance),
            target.compute->id,
            0,
            {target.compute->start, target.compute->slices}};
    for (const ComputeProfile& profile : compute_profiles())
      if (profile.slices == target.compute->slices) out->profile = profile.id;
    return Return::success;
  });
}
NVML_API Return nvmlComputeInstanceGetInfo(nvml::ComputeInstance compute,
                                           nvml::ComputeInstanceInfo* out) {
  return nvmlComputeInstanceGetInfo_v2(compute, out);
}
