#include "noded/gpu/health/sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace gantry::gpu {
namespace {

// Processes are listed only once in so many steps: they change slowly, and a list takes three
// calls.
constexpr std::uint64_t kStepsPerProcesses = 6;

}  // namespace

GpuSampler::GpuSampler(const Nvml& nvml, const Discovery& found, Duration interval)
    : nvml_(nvml), found_(found), interval_(interval) {}

GpuSampler::~GpuSampler() {
  for (auto& [uuid, source] : sources_) drop(source);
}

void GpuSampler::drop(Source& source) {
  for (nvml::GpmSample* sample : {&source.before, &source.after}) {
    if (*sample != nullptr) nvml_.free(*sample);
    *sample = nullptr;
  }
}

Result<GpuSampler::Source> GpuSampler::find(std::uint32_t index, const MigSlice* slice) const {
  if (index >= found_.inventory.gpus.size() || found_.devices[index] == nullptr)
    return fail(ErrorCode::not_found, fmt::format("there is no GPU {}", index));
  const GpuDevice& gpu = found_.inventory.gpus[index];
  Source out;
  out.gpu = index;
  out.device = found_.devices[index];
  out.uuid = gpu.uuid;
  out.name = gpu.model;
  if (slice == nullptr) return out;
  const auto devices = nvml_.mig_devices(out.device);
  if (!devices) return fail_nvml(slice->uuid, devices.error());
  const auto device = std::find_if(devices->begin(), devices->end(),
                                   [&](auto& one) { return one.uuid == slice->uuid; });
  if (device == devices->end())
    return fail(ErrorCode::not_found, fmt::format("GPU {} has no slice {}", index, slice->uuid));
  out.device = device->device;
  out.gpu_instance = device->gpu_instance;
  out.uuid = slice->uuid;
  const MigGeometry* geometry = find_geometry(found_.inventory, gpu.model);
  const MigProfile* profile =
      geometry != nullptr ? find_profile(*geometry, slice->profile) : nullptr;
  if (profile != nullptr) {
    out.name += " " + profile->name;
    out.compute_slices = profile->compute_slices;
    out.of_slices = geometry->compute_slices;
  }
  return out;
}

Result<GpuSampler::Track> GpuSampler::begin(std::uint32_t gpu, const MigSlice* slice, Instant now) {
  ASSIGN(found, find(gpu, slice));
  const auto [at, fresh] = sources_.try_emplace(found->uuid, std::move(*found));
  Source& source = at->second;
  ++source.users;
  if (fresh && source.gpu_instance && nvml_.has_gpm(found_.devices[gpu])) {
    source.before = nvml_.create_sample().value_or(nullptr);
    source.after = nvml_.create_sample().value_or(nullptr);
  }
  tracks_.emplace(++last_track_, Tracked{at->first, now, UsageSeries(now, interval_)});
  return last_track_;
}

std::optional<GpuUsage> GpuSampler::so_far(Track track) const {
  const auto found = tracks_.find(track);
  if (found == tracks_.end()) return std::nullopt;
  const Source& source = sources_.at(found->second.source);
  return found->second.series.stored(source.uuid, source.name);
}

std::optional<GpuUsage> GpuSampler::end(Track track) {
  auto usage = so_far(track);
  if (!usage) return usage;
  const auto found = tracks_.find(track);
  const auto source = sources_.find(found->second.source);
  tracks_.erase(found);
  if (--source->second.users == 0) {
    drop(source->second);
    sources_.erase(source);
  }
  return usage;
}

// Compares the sample of the step before with one that is taken now.
std::optional<std::uint32_t> GpuSampler::busy_of(Source& source) {
  if (!source.gpu_instance) {
    const auto rates = nvml_.utilization(source.device);
    return rates ? std::optional(std::min(rates->gpu, 100u)) : std::nullopt;
  }
  if (source.before == nullptr || source.after == nullptr) return std::nullopt;
  const bool had_before = source.has_before;
  source.has_before =
      nvml_.take(found_.devices[source.gpu], *source.gpu_instance, source.after).has_value();
  std::optional<std::uint32_t> busy;
  if (had_before && source.has_before)
    if (const auto value = nvml_.busy(source.before, source.after); value && *value >= 0)
      busy = static_cast<std::uint32_t>(std::lround(std::min(*value, 100.0)));
  std::swap(source.before, source.after);
  return busy;
}

void GpuSampler::look(Source& source, std::optional<std::uint32_t> gpu_power, bool at_processes) {
  source.reading.reset();
  const auto memory = nvml_.memory(source.device);
  if (!memory) {
    source.has_process = false;
    source.has_before = false;
    return;
  }
  Reading reading;
  reading.memory = memory->used;
  reading.busy = busy_of(source);
  if (gpu_power && (!source.gpu_instance || source.compute_slices > 0))
    reading.power_mw =
        source.gpu_instance ? *gpu_power * source.compute_slices / source.of_slices : *gpu_power;
  if (at_processes) {
    const auto processes = nvml_.processes(source.device);
    source.has_process = processes && !processes->empty();
  }
  source.reading = reading;
}

void GpuSampler::step(Instant now) {
  const bool at_processes = steps_++ % kStepsPerProcesses == 0;
  std::map<std::uint32_t, std::optional<std::uint32_t>> power;
  for (auto& [uuid, source] : sources_) {
    if (found_.devices[source.gpu] == nullptr) {  // the GPU has fallen off the bus
      source.reading.reset();
      continue;
    }
    const auto [at, fresh] = power.try_emplace(source.gpu);
    if (fresh)
      if (const auto mw = nvml_.power_mw(found_.devices[source.gpu])) at->second = *mw;
    look(source, at->second, at_processes);
  }
  for (auto& [id, track] : tracks_) {
    const Source& source = sources_.at(track.source);
    if (source.reading) track.series.add(now, *source.reading);
    if (at_processes && source.has_process) track.series.saw_process(now);
  }
}

std::vector<GpuSampler::Activity> GpuSampler::activity() const {
  std::vector<Activity> out;
  for (const auto& [id, track] : tracks_) {
    const Source& source = sources_.at(track.source);
    out.push_back({id, track.since, source.reading, track.series.last_busy(),
                   track.series.last_process(), source.name, source.has_process});
  }
  return out;
}

}  // namespace gantry::gpu
