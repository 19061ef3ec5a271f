// The part of GpuWork (gpu_work.h) about what jobs do on their devices, and what is left there
// afterwards.
#include <algorithm>

#include "noded/gpu/node/gpu_work.h"
#include "noded/runtime/job_dir.h"

namespace gantry::node {

namespace {

const MigSlice* slice_of(const GpuDevice& gpu, const std::string& uuid) {
  for (const MigSlice& slice : gpu.slices)
    if (slice.uuid == uuid) return &slice;
  return nullptr;
}

}  // namespace

HandedDevice GpuWork::handed(const GpuDevice& gpu, const MigSlice* slice) const {
  HandedDevice out;
  out.gpu = gpu.index;
  out.gpu_uuid = out.uuid = gpu.uuid;
  if (slice == nullptr) return out;
  out.uuid = slice->uuid;
  out.gpu_instance = slice->gpu_instance;
  const MigGeometry* geometry = gpu::find_geometry(found_.inventory, gpu.model);
  const MigProfile* profile =
      geometry != nullptr ? gpu::find_profile(*geometry, slice->profile) : nullptr;
  if (profile == nullptr) return out;  // treated as if it were the whole GPU
  out.first = slice->start;
  out.slices = profile->memory_slices;
  return out;
}

std::vector<HandedDevice> GpuWork::devices_of(const AttemptKey& key) const {
  std::vector<HandedDevice> out;
  const auto held = held_.find(key);
  if (held == held_.end()) return out;
  for (const std::string& uuid : held->second)
    for (const GpuDevice& gpu : found_.inventory.gpus) {
      const MigSlice* slice = slice_of(gpu, uuid);
      if ((slice != nullptr || gpu.uuid == uuid) && holders_.alone(key, uuid))
        out.push_back(handed(gpu, slice));
    }
  return out;
}

void GpuWork::hold(const AttemptKey& key, std::vector<std::string> uuids,
                   const runtime::LaunchSharing& sharing) {
  for (const std::string& uuid : uuids) holders_.recovered(key, uuid, sharing);
  held_[key] = std::move(uuids);
  begin_use(key);
}

void GpuWork::release(const AttemptKey& key) {
  held_.erase(key);
  holders_.released(key);
  const auto at = tracks_.find(key);
  if (at == tracks_.end()) return;
  for (const Tracked& one : at->second) (void)sampler_->end(one.track);
  tracks_.erase(at);
}

void GpuWork::begin_use(const AttemptKey& key) {
  const auto held = held_.find(key);
  if (sampler_ == nullptr || held == held_.end() || tracks_.contains(key)) return;
  const Instant now = runtime::wall_clock();
  for (const std::string& uuid : held->second)
    for (const GpuDevice& gpu : found_.inventory.gpus) {
      const MigSlice* slice = slice_of(gpu, uuid);
      if (slice == nullptr && gpu.uuid != uuid) continue;
      const auto track = sampler_->begin(gpu.index, slice, now);
      if (!track) continue;  // the device is lost: its job ends
      std::int64_t memory = gpu.memory;
      const MigGeometry* geometry = gpu::find_geometry(found_.inventory, gpu.model);
      if (slice != nullptr && geometry != nullptr)
        if (const MigProfile* profile = gpu::find_profile(*geometry, slice->profile))
          memory = profile->memory;
      tracks_[key].push_back(
          {*track, gpu.index, static_cast<std::uint32_t>(mebibytes_in(ByteCount{memory}).value())});
    }
}

std::vector<proto::GpuActivity> GpuWork::sample() {
  std::vector<proto::GpuActivity> out;
  if (sampler_ == nullptr || tracks_.empty()) return out;
  const Instant now = runtime::wall_clock();
  sampler_->step(now);
  std::map<gpu::GpuSampler::Track, gpu::GpuSampler::Activity> activity;
  for (auto& one : sampler_->activity()) activity[one.track] = one;
  for (const auto& [key, tracks] : tracks_)
    for (const Tracked& tracked : tracks) {
      const auto& seen = activity.at(tracked.track);
      proto::GpuActivity& a = out.emplace_back();
      a.key = key;
      a.gpu = tracked.gpu;
      a.name = seen.name;
      a.of_memory_mib = tracked.memory_mib;
      a.has_process = seen.has_process;
      // If the driver does not tell how busy a slice is, a slice with a process counts as busy.
      std::optional<Instant> last = seen.last_busy;
      if (seen.reading) {
        a.busy = seen.reading->busy;
        a.memory_mib = static_cast<std::uint32_t>(
            mebibytes_in(ByteCount{static_cast<std::int64_t>(seen.reading->memory)}).value());
        if (seen.reading->power_mw) a.power_w = (*seen.reading->power_mw + 500) / 1000;
        if (!seen.reading->busy) last = seen.last_process;
      }
      a.idle = std::max(Duration{}, now - last.value_or(seen.since));
    }
  return out;
}

std::vector<GpuUsage> GpuWork::finish(const AttemptKey& key) {
  std::vector<GpuUsage> out;
  if (const auto at = tracks_.find(key); at != tracks_.end()) {
    for (const Tracked& tracked : at->second) {
      auto usage = sampler_->so_far(tracked.track);
      if (!usage) continue;
      usage->gpu = tracked.gpu;
      usage->memory_mib = tracked.memory_mib;
      out.push_back(std::move(*usage));
    }
  }
  release(key);
  return out;
}

std::vector<GpuHandover::Seen> GpuWork::look_at(const std::vector<HandedDevice>& devices) const {
  std::vector<GpuHandover::Seen> out(devices.size());
  if (nvml_ == nullptr) return out;
  const Instant now = runtime::wall_clock();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const GpuDevice* gpu = find(devices[i].gpu);
    // The GPU is lost, and that was reported already.
    if (gpu == nullptr || found_.devices[gpu->index] == nullptr) continue;
    const MigSlice* slice = devices[i].gpu_instance ? slice_of(*gpu, devices[i].uuid) : nullptr;
    if (devices[i].gpu_instance && slice == nullptr) continue;  // the slice does not exist any more
    gpu::ProbeReport report =
        gpu::probe(*nvml_, found_.devices[gpu->index], baselines_[gpu->index], slice, now);
    // A fault that only a reset repairs is no worse for the next job than it was for the one
    // before.
    std::erase_if(report.faults, [](const GpuFault& f) { return gpu::can_wait(f); });
    if (!report.faults.empty())
      out[i].fault = report.faults.front();
    else
      out[i].left = report.why(gpu::kIdleMemory);
  }
  return out;
}

}  // namespace gantry::node
