// The part of Nvml about processes and MIG, where lists of unknown length are read.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/quantity.h"
#include "noded/gpu/nvml/nvml_load.h"

namespace gantry::gpu {

using nvml::Return;

namespace {

constexpr std::uint32_t kMostProcesses = 4096;
// Instances of one profile on one GPU; the largest number so far is 7.
constexpr std::uint32_t kMostInstances = 64;

bool is_absent(Return code) {  // this driver or this GPU lacks it
  return code == Return::not_supported || code == Return::invalid_argument ||
         code == Return::not_found || code == Return::function_not_found;
}

// Reads a list: asks for its length first, and again if it has grown meanwhile.
Answer<void> add_processes(
    const Call<Return(nvml::Device, std::uint32_t*, nvml::ProcessInfo*)>& function,
    nvml::Device device, std::vector<nvml::ProcessInfo>& out) {
  for (std::uint32_t room = 0;;) {
    std::vector<nvml::ProcessInfo> list(room);
    std::uint32_t count = room;
    const auto done = call(function, device, &count, room > 0 ? list.data() : nullptr);
    if (done) {
      list.resize(std::min(count, room));
      out.insert(out.end(), list.begin(), list.end());
      return {};
    }
    if (done.error().code != Return::insufficient_size || count > kMostProcesses) return done;
    room = std::max(count + 8, room * 2);
  }
}

// Makes nvidia-smi's names for drivers that do not give them: the GPU's memory in GB, times the
// eighths of it that the profile has (the rule of NVIDIA's go-nvlib).
std::string name_of(std::uint32_t index, const nvml::GpuInstanceProfile& info,
                    std::uint64_t total) {
  constexpr std::uint32_t kOneSliceWithMedia = 7, kTwoSlicesWithMedia = 8;  // profile indexes
  constexpr double kGiB = 1u << 30;
  const bool media = index == kOneSliceWithMedia || index == kTwoSlicesWithMedia;
  const double mine =
      static_cast<double>(bytes_of(Mebibytes{static_cast<std::int64_t>(info.memory_mib)}).value());
  const double eighths =
      std::ceil(8 * mine / static_cast<double>(std::max<std::uint64_t>(1, total)));
  const double gb = std::round(eighths / 8 * std::ceil(static_cast<double>(total) / kGiB));
  return fmt::format("{}g.{:.0f}gb{}", info.slices, gb, media ? "+me" : "");
}

std::string plain_name(const char* text) {  // some drivers say "MIG 1g.10gb"
  std::string_view name(text, ::strnlen(text, nvml::kNameBytes));
  if (name.starts_with("MIG ")) name.remove_prefix(4);
  return std::string(name);
}

}  // namespace

Answer<std::vector<nvml::ProcessInfo>> Nvml::processes(nvml::Device device) const {
  std::vector<nvml::ProcessInfo> all;
  TRY(add_processes(calls_->compute_processes, device, all));
  for (const auto* kind : {&calls_->mps_processes, &calls_->graphics_processes})
    if (auto done = add_processes(*kind, device, all); !done && !is_absent(done.error().code))
      return tl::unexpected(done.error());
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.pid < b.pid; });
  all.erase(std::unique(all.begin(), all.end(), [](auto& a, auto& b) { return a.pid == b.pid; }),
            all.end());
  return all;
}

Answer<MigMode> Nvml::mig_mode(nvml::Device device) const {
  std::uint32_t now = 0, later = 0;
  const auto done = call(calls_->mig_mode, device, &now, &later);
  if (done) return MigMode{now == 1, later == 1};
  if (is_absent(done.error().code)) return MigMode{};
  return tl::unexpected(done.error());
}

Answer<std::vector<Profile>> Nvml::profiles(nvml::Device device) const {
  std::vector<Profile> out;
  for (std::uint32_t index = 0; index < nvml::kMostGpuInstanceProfiles; ++index) {
    nvml::GpuInstanceProfileV2 v2{};
    v2.version = nvml::version_of<nvml::GpuInstanceProfileV2>(2);
    const auto named = call(calls_->profile_v2, device, index, &v2);
    if (named) {
      out.push_back({{v2.id, v2.p2p, v2.slices, v2.instances, v2.multiprocessors, v2.copy_engines,
                      v2.decoders, v2.encoders, v2.jpeg, v2.ofa, v2.memory_mib},
                     plain_name(v2.name)});
    } else {
      const auto plain = get<nvml::GpuInstanceProfile>(calls_->profile, device, index);
      if (!plain && is_absent(plain.error().code)) continue;
      if (!plain) return tl::unexpected(plain.error());
      out.push_back({*plain, ""});
    }
    if (out.back().name.empty())
      out.back().name = name_of(index, out.back().info, memory(device).value_or(MemoryUse{}).total);
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.info.id < b.info.id; });
  return out;
}

Answer<std::vector<nvml::Placement>> Nvml::placements(nvml::Device device,
                                                      std::uint32_t profile) const {
  std::uint32_t count = 0;
  TRY(call(calls_->placements, device, profile, nullptr, &count));
  std::vector<nvml::Placement> out(std::min(count, kMostInstances));
  TRY(call(calls_->placements, device, profile, out.data(), &count));
  out.resize(std::min<std::size_t>(count, out.size()));
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.start < b.start; });
  return out;
}

Answer<std::vector<nvml::GpuInstance>> Nvml::gpu_instances(nvml::Device device,
                                                           std::uint32_t profile) const {
  // NVML wants room for as many instances as the profile may have, and does not say how many that
  // are.
  std::vector<nvml::GpuInstance> out(kMostInstances);
  std::uint32_t count = kMostInstances;
  TRY(call(calls_->gpu_instances, device, profile, out.data(), &count));
  out.resize(std::min(count, kMostInstances));
  return out;
}

Answer<nvml::GpuInstanceInfo> Nvml::info(nvml::GpuInstance instance) const {
  return get<nvml::GpuInstanceInfo>(calls_->gpu_instance_info, instance);
}

Answer<nvml::GpuInstance> Nvml::create(nvml::Device device, std::uint32_t profile,
                                       nvml::Placement at) const {
  nvml::GpuInstance out = nullptr;
  TRY(call(calls_->create_gpu_instance, device, profile, &at, &out));
  return out;
}

Answer<void> Nvml::destroy(nvml::GpuInstance instance) const {
  return call(calls_->destroy_gpu_instance, instance);
}

Answer<std::vector<nvml::ComputeInstanceProfile>> Nvml::compute_profiles(
    nvml::GpuInstance instance) const {
  std::vector<nvml::ComputeInstanceProfile> out;
  for (std::uint32_t index = 0; index < nvml::kMostComputeInstanceProfiles; ++index) {
    const auto one =
        get<nvml::ComputeInstanceProfile>(calls_->compute_profile, instance, index, 0u);
    if (one)
      out.push_back(*one);
    else if (!is_absent(one.error().code))
      return tl::unexpected(one.error());
  }
  return out;
}

Answer<std::vector<nvml::ComputeInstance>> Nvml::compute_instances(nvml::GpuInstance instance,
                                                                   std::uint32_t profile) const {
  std::vector<nvml::ComputeInstance> out(kMostInstances);
  std::uint32_t count = kMostInstances;
  TRY(call(calls_->compute_instances, instance, profile, out.data(), &count));
  out.resize(std::min(count, kMostInstances));
  return out;
}

Answer<nvml::ComputeInstanceInfo> Nvml::info(nvml::ComputeInstance instance) const {
  return get<nvml::ComputeInstanceInfo>(calls_->compute_instance_info, instance);
}

Answer<nvml::ComputeInstance> Nvml::create(nvml::GpuInstance instance,
                                           std::uint32_t profile) const {
  return get<nvml::ComputeInstance>(calls_->create_compute_instance, instance, profile);
}

Answer<void> Nvml::destroy(nvml::ComputeInstance instance) const {
  return call(calls_->destroy_compute_instance, instance);
}

Answer<std::vector<Nvml::MigDevice>> Nvml::mig_devices(nvml::Device device) const {
  std::vector<MigDevice> out;
  const auto most = get<std::uint32_t>(calls_->mig_most, device);
  if (!most && is_absent(most.error().code)) return out;
  if (!most) return tl::unexpected(most.error());
  for (std::uint32_t index = 0; index < std::min(*most, kMostInstances); ++index) {
    const auto handle = get<nvml::Device>(calls_->mig_device, device, index);
    if (!handle && is_absent(handle.error().code)) continue;  // a gap in the list, or its end
    if (!handle) return tl::unexpected(handle.error());
    MigDevice one;
    one.device = *handle;
    ASSIGN(gi, get<std::uint32_t>(calls_->mig_gpu_instance, *handle));
    ASSIGN(ci, get<std::uint32_t>(calls_->mig_compute_instance, *handle));
    ASSIGN(name, uuid(*handle));
    one.gpu_instance = *gi;
    one.compute_instance = *ci;
    one.uuid = std::move(*name);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace gantry::gpu
