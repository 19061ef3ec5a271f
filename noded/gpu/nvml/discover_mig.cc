// Discovers into which slices a GPU can be cut, and which slices it has.
#include <fmt/core.h>

#include <algorithm>

#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

using nvml::Return;

Answer<MigGeometry> geometry_of(const Nvml& nvml, nvml::Device device, const std::string& model) {
  MigGeometry out;
  out.model = model;
  ASSIGN(profiles, nvml.profiles(device));
  for (const Profile& one : *profiles) {
    const auto places = nvml.placements(device, one.info.id);
    // The profile is not available in this mode.
    if (!places && places.error().code == Return::not_supported) continue;
    if (!places) return tl::unexpected(places.error());
    if (places->empty()) continue;
    MigProfile profile;
    profile.name = one.name;
    profile.id = one.info.id;
    profile.compute_slices = one.info.slices;
    profile.memory_slices = places->front().size;
    profile.memory = bytes_of(Mebibytes{static_cast<std::int64_t>(one.info.memory_mib)}).value();
    profile.max_instances = one.info.instances;
    for (const nvml::Placement& place : *places) {
      profile.starts.push_back(place.start);
      out.memory_slices = std::max(out.memory_slices, place.start + place.size);
    }
    out.compute_slices = std::max(out.compute_slices, profile.compute_slices);
    out.profiles.push_back(std::move(profile));
  }
  return out;
}

namespace {

// The one compute instance of a GPU instance; nothing if there are several of them, or none.
const Nvml::MigDevice* whole_instance(const std::vector<Nvml::MigDevice>& devices,
                                      std::uint32_t gpu_instance) {
  const Nvml::MigDevice* found = nullptr;
  for (const Nvml::MigDevice& one : devices) {
    if (one.gpu_instance != gpu_instance) continue;
    if (found != nullptr) return nullptr;
    found = &one;
  }
  return found;
}

// Does the GPU instance have a compute instance with all of its `slices` compute slices?
Answer<bool> has_whole_instance(const Nvml& nvml, nvml::GpuInstance instance,
                                std::uint32_t slices) {
  ASSIGN(profiles, nvml.compute_profiles(instance));
  for (const nvml::ComputeInstanceProfile& profile : *profiles) {
    if (profile.slices != slices) continue;
    ASSIGN(present, nvml.compute_instances(instance, profile.id));
    if (!present->empty()) return true;
  }
  return false;
}

}  // namespace

Answer<std::vector<MigSlice>> slices_of(const Nvml& nvml, nvml::Device device,
                                        const std::vector<MigProfile>& profiles,
                                        std::vector<std::string>& warnings) {
  std::vector<MigSlice> out;
  ASSIGN(devices, nvml.mig_devices(device));
  for (const MigProfile& profile : profiles) {
    ASSIGN(instances, nvml.gpu_instances(device, profile.id));
    for (const nvml::GpuInstance instance : *instances) {
      const auto info = nvml.info(instance);
      if (!info && info.error().code == Return::not_found) continue;  // the instance has just gone
      if (!info) return tl::unexpected(info.error());
      const Nvml::MigDevice* whole = whole_instance(*devices, info->id);
      ASSIGN(all, has_whole_instance(nvml, instance, profile.compute_slices));
      if (whole == nullptr || !*all) {
        const auto any = std::any_of(devices->begin(), devices->end(),
                                     [&](auto& one) { return one.gpu_instance == info->id; });
        warnings.push_back(
            fmt::format("GPU instance {} ({} at {}) has {}, so it is not used", info->id,
                        profile.name, info->placement.start,
                        any ? "compute instances with parts of it" : "no compute instance"));
        continue;
      }
      out.push_back(
          {profile.id, info->placement.start, info->id, whole->compute_instance, whole->uuid});
    }
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.start < b.start; });
  return out;
}

}  // namespace gantry::gpu
