#include "noded/gpu/health/sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/quantity.h"

namespace gantry::gpu {

namespace {

// Processes are listed only once in this many steps: they change slowly, and a list takes three
// calls.
constexpr std::uint64_t kStepsPerProcesses = 6;

void put(Bytes& out, std::int64_t delta) {
  auto bits = static_cast<std::uint64_t>(delta) << 1 ^ static_cast<std::uint64_t>(delta >> 63);
  for (; bits >= 0x80; bits >>= 7) out.push_back(static_cast<char>(bits | 0x80));
  out.push_back(static_cast<char>(bits));
}

bool take(std::string_view& data, std::int64_t& value) {
  std::uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (data.empty()) return false;
    const auto byte = static_cast<unsigned char>(data.front());
    data.remove_prefix(1);
    bits |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) != 0) continue;
    const std::int64_t delta =
        static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
    return !__builtin_add_overflow(value, delta, &value);
  }
  return false;
}

// The numbers of a point; each is stored as the difference to the previous point. busy: percent +
// 2; 1 = unknown; 0 = no samples, and no other number follows. memory: MiB. power: watts + 1, or 0.
struct Codes {
  std::int64_t busy = 0, memory = 0, power = 0;
};

}  // namespace

GpuSampler::GpuSampler(const Nvml& nvml, const Discovery& found, Duration interval)
    : nvml_(nvml), found_(found), interval_(interval) {}

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
  const auto device =
      std::ranges::find_if(*devices, [&](auto& one) { return one.uuid == slice->uuid; });
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

// Compares the GPM sample of the previous step with one that is taken now.
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

void UsageSeries::Sums::merge(const Sums& other) {
  samples += other.samples;
  busy_samples += other.busy_samples;
  power_samples += other.power_samples;
  memory_mib = std::max(memory_mib, other.memory_mib);
  busy += other.busy;
  power_mw += other.power_mw;
}

std::optional<SeriesPoint> UsageSeries::Sums::point() const {
  if (samples == 0) return std::nullopt;
  SeriesPoint out;
  out.memory_mib = memory_mib;
  if (busy_samples > 0)
    out.busy = static_cast<std::uint32_t>((busy + busy_samples / 2) / busy_samples);
  if (power_samples > 0)
    out.power_w = static_cast<std::uint32_t>((power_mw / power_samples + 500) / 1000);
  return out;
}

void UsageSeries::halve() {
  for (std::size_t i = 0; i < ring_.size(); i += 2) {
    Sums pair = ring_[i];
    if (i + 1 < ring_.size()) pair.merge(ring_[i + 1]);
    ring_[i / 2] = pair;
  }
  ring_.resize((ring_.size() + 1) / 2);
  interval_ = interval_ * 2;
}

void UsageSeries::add(Instant now, const Reading& reading) {
  Sums one;
  one.samples = 1;
  one.memory_mib = static_cast<std::uint32_t>(
      mebibytes_in(ByteCount{static_cast<std::int64_t>(reading.memory)}).value());
  if (reading.busy) {
    one.busy_samples = 1;
    one.busy = *reading.busy;
    if (*reading.busy > 0) last_busy_ = now;
  }
  if (reading.power_mw) {
    one.power_samples = 1;
    one.power_mw = *reading.power_mw;
    const Instant since = last_sample_.value_or(start_);
    if (now > since)
      energy_mj_ += *reading.power_mw * static_cast<std::uint64_t>((now - since).us) / 1'000'000;
  }
  last_sample_ = now;
  total_.merge(one);
  const auto slot = [&] {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, (now - start_).us) / interval_.us);
  };
  while (slot() >= kSeriesPoints) halve();
  if (slot() >= ring_.size()) ring_.resize(slot() + 1);
  ring_[slot()].merge(one);
}

std::vector<std::optional<SeriesPoint>> UsageSeries::points() const {
  std::vector<std::optional<SeriesPoint>> out;
  out.reserve(ring_.size());
  for (const Sums& one : ring_) out.push_back(one.point());
  return out;
}

GpuUsage UsageSeries::stored(std::string uuid, std::string name) const {
  GpuUsage out;
  out.uuid = std::move(uuid);
  out.name = std::move(name);
  out.start = start_;
  out.interval = interval_;
  out.points = static_cast<std::uint32_t>(ring_.size());
  out.data = encode_points(points());
  out.samples = total_.samples;
  out.busy_samples = total_.busy_samples;
  if (total_.busy_samples > 0)
    out.busy_permille = static_cast<std::uint32_t>(total_.busy * 10 / total_.busy_samples);
  out.memory_peak_mib = total_.memory_mib;
  out.energy_j = energy_mj_ / 1000;
  out.last_busy = last_busy_;
  out.last_process = last_process_;
  return out;
}

Bytes encode_points(const std::vector<std::optional<SeriesPoint>>& points) {
  Bytes out;
  Codes last;
  for (const auto& point : points) {
    const std::int64_t busy = !point        ? 0
                              : point->busy ? static_cast<std::int64_t>(*point->busy) + 2
                                            : 1;
    put(out, busy - last.busy);
    last.busy = busy;
    if (!point) continue;
    const std::int64_t power = point->power_w ? static_cast<std::int64_t>(*point->power_w) + 1 : 0;
    put(out, static_cast<std::int64_t>(point->memory_mib) - last.memory);
    put(out, power - last.power);
    last.memory = point->memory_mib;
    last.power = power;
  }
  return out;
}

Result<std::vector<std::optional<SeriesPoint>>> decode_points(std::string_view data,
                                                              std::uint32_t points) {
  const auto bad = [] {
    return fail(ErrorCode::malformed, "a series of GPU usage cannot be decoded");
  };
  constexpr std::int64_t kMost = 0xFFFFFFFF;
  if (points > kSeriesPoints) return bad();
  std::vector<std::optional<SeriesPoint>> out;
  Codes now;
  for (std::uint32_t i = 0; i < points; ++i) {
    if (!take(data, now.busy) || now.busy < 0 || now.busy > kMost) return bad();
    if (now.busy == 0) {
      out.emplace_back();
      continue;
    }
    if (!take(data, now.memory) || now.memory < 0 || now.memory > kMost) return bad();
    if (!take(data, now.power) || now.power < 0 || now.power > kMost) return bad();
    SeriesPoint point;
    point.memory_mib = static_cast<std::uint32_t>(now.memory);
    if (now.busy > 1) point.busy = static_cast<std::uint32_t>(now.busy - 2);
    if (now.power > 0) point.power_w = static_cast<std::uint32_t>(now.power - 1);
    out.push_back(point);
  }
  if (!data.empty()) return bad();
  return out;
}

}  // namespace gantry::gpu
