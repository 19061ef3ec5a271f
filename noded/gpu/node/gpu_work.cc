#include "noded/gpu/node/gpu_work.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "noded/gpu/cdi.h"
#include "noded/runtime/job_dir.h"

namespace gantry::node {

namespace {

ByteCount slice_memory(const GpuInventory& found, const GpuDevice& gpu, const MigSlice& slice) {
  for (const MigGeometry& g : found.geometries)
    if (g.model == gpu.model)
      if (const MigProfile* p = gpu::find_profile(g, slice.profile)) return ByteCount{p->memory};
  return {};
}

}  // namespace

GpuWork::GpuWork(Options options, gpu::KnownGpus known, const Logger& log, Publish publish)
    : options_(std::move(options)),
      log_(log),
      publish_(std::move(publish)),
      known_(std::move(known)),
      holders_(options_.holders, log) {}

void GpuWork::open() {
  auto opened = gpu::Nvml::open(options_.library);
  if (!opened) {
    found_.inventory = gpu::no_gpus(opened.error());
    return publish(false);
  }
  nvml_ = std::move(*opened);
  auto journal = gpu::MigJournal::open(options_.state_dir + "/mig");
  if (journal)
    partitioner_ = std::make_unique<gpu::MigPartitioner>(*nvml_, std::move(*journal));
  else
    log_.error("slices cannot be made", {{"why", journal.error().message}});
  sampler_ = std::make_unique<gpu::GpuSampler>(*nvml_, found_, options_.sample);
  check();
}

void GpuWork::see() {
  const Instant now = runtime::wall_clock();
  found_ = gpu::discover(*nvml_, options_.roots, now);
  found_.inventory.cannot_share = holders_.cannot_share();
  for (const std::string& warning : found_.warnings)  // a warning is logged once, not at every look
    if (std::ranges::find(warned_, warning) == warned_.end()) log_.warning(warning);
  warned_ = found_.warnings;
  auto numbers = gpu::read_device_numbers(options_.roots);
  if (numbers) {
    numbers_ = std::move(*numbers);
  } else if (!found_.inventory.gpus.empty()) {
    found_.inventory.gpus.clear();
    found_.inventory.why_none = numbers.error().message;
    return;
  }
  gpu::keep_indexes(found_, known_, now);
  known_.gpus = found_.inventory.gpus;
  // A link that was up before counts as down, even if it went down while no daemon ran.
  baselines_.resize(known_.gpus.size());
  known_.links.resize(known_.gpus.size());
  for (std::size_t i = 0; i < baselines_.size(); ++i) {
    if (baselines_[i].links == 0 && found_.devices[i] != nullptr)
      baselines_[i] = gpu::HealthBaseline::of(*nvml_, found_.devices[i]);
    known_.links[i] = baselines_[i].links = std::max(baselines_[i].links, known_.links[i]);
  }
}

void GpuWork::publish(bool checked) {
  GpuSight sight{found_.inventory, std::nullopt, known_.links};
  if (checked) {
    const Instant now = runtime::wall_clock();
    auto& checks = sight.checks.emplace(found_.inventory.gpus.size());
    for (std::size_t i = 0; i < checks.size(); ++i)
      if (found_.devices[i] != nullptr)  // a lost GPU has its fault already
        checks[i] = gpu::check(*nvml_, found_.devices[i], baselines_[i], now);
  }
  publish_(std::move(sight));
}

void GpuWork::look() {
  if (nvml_ == nullptr) return;
  see();
  publish(false);
}

void GpuWork::check() {
  if (nvml_ == nullptr) return;
  see();
  publish(true);
}

void GpuWork::begin_watch(std::function<void(const gpu::GpuEvent&)> sink,
                          std::function<void(const std::string&)> failed) {
  holders_.settle();
  if (nvml_ == nullptr) return;
  finish_halves();
  if (found_.inventory.gpus.empty()) return;
  auto reader = gpu::EventReader::open(*nvml_, found_);
  if (!reader) return failed(reader.error().message);
  events_ = std::make_unique<gpu::EventThread>(
      std::move(*reader), std::move(sink),
      [nvml = nvml_, failed = std::move(failed)](const gpu::Failure& why) {
        failed(gpu::to_string(why));
      });
}

// Finishes what a dead daemon left incomplete. By now it is known which slices are held.
void GpuWork::finish_halves() {
  if (!partitioner_ || options_.by_hand) return;
  const auto held = held_devices();
  const auto done = partitioner_->recover(gpu::mig_targets(found_), held);
  if (!done) return log_.error("slices", {{"why", done.error().message}});
  for (const std::string& what : *done) log_.info(what);
  if (!done->empty()) look();
}

std::vector<std::string> GpuWork::held_devices() const {
  std::vector<std::string> out;
  for (const auto& [key, uuids] : held_) out.insert(out.end(), uuids.begin(), uuids.end());
  return out;
}

const GpuDevice* GpuWork::find(std::uint32_t index) const {
  for (const GpuDevice& gpu : found_.inventory.gpus)
    if (gpu.index == index) return &gpu;
  return nullptr;
}

// Returns the driver's device file, or makes one if it does not exist: nobody else makes the files
// of new slices.
Result<std::string> GpuWork::file_of(const gpu::DeviceFile& file) const {
  const dev_t number = makedev(file.major, file.minor);
  const auto is_it = [&](const std::string& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == number;
  };
  std::string path = options_.roots.dev + file.path.substr(4);
  if (is_it(path)) return path;
  TRY(runtime::make_dirs(options_.files_dir, 0711));
  path = fmt::format("{}/{}-{}", options_.files_dir, file.major, file.minor);
  const mode_t mode = file.permissions.find('w') != std::string::npos ? 0666 : 0444;
  if (is_it(path)) return path;
  if (::mknod(path.c_str(), S_IFCHR | mode, number) != 0 || ::chmod(path.c_str(), mode) != 0)
    return runtime::fail_errno(ErrorCode::io_error, path);
  return path;
}

Result<void> GpuWork::add_files(const std::vector<gpu::DeviceFile>& files,
                                runtime::LaunchRequest& request) const {
  for (const gpu::DeviceFile& file : files) {
    const bool known =
        std::ranges::any_of(request.devices, [&](const auto& d) { return d.path == file.path; });
    if (known) continue;
    ASSIGN(source, file_of(file));
    request.devices.push_back(
        {file.path, std::move(*source), file.major, file.minor, file.permissions});
  }
  return {};
}

Result<MigSlice> GpuWork::slice_for(const GpuDevice& gpu, const GpuGrant& grant) {
  const auto held = held_devices();
  const auto is_held = [&](const MigSlice& s) {
    return std::ranges::find(held, s.uuid) != held.end();
  };
  const auto targets = gpu::mig_targets(found_);
  const auto target =
      std::ranges::find_if(targets, [&](const auto& t) { return t.gpu->uuid == gpu.uuid; });
  if (!partitioner_ || target == targets.end())
    return fail(ErrorCode::unavailable, fmt::format("GPU {} is not in MIG mode", grant.gpu));
  const auto size = [&](std::uint32_t profile) {
    const MigProfile* p = gpu::find_profile(*target->geometry, profile);
    return p != nullptr ? p->memory_slices : 0;
  };
  const std::vector<MigSlice> present = gpu.slices;
  for (const MigSlice& s : present)
    if (s.profile == *grant.profile && s.start == grant.start && (grant.part() || !is_held(s)))
      return s;  // GpuHolders knows the other jobs with parts of it
  if (options_.by_hand)
    return fail(ErrorCode::unavailable,
                fmt::format("the slice at {} of GPU {} is not there", grant.start, grant.gpu));
  for (const MigSlice& s : present) {
    const bool in_the_way =
        s.start < grant.start + size(*grant.profile) && grant.start < s.start + size(s.profile);
    if (!in_the_way) continue;
    TRY(partitioner_->destroy(*target, s, held));
  }
  auto made = partitioner_->create(*target, *grant.profile, grant.start);
  if (!made && made.error().code == ErrorCode::wrong_state) {
    // Compute slices may be used up although the place is free, because idle slices elsewhere on
    // the GPU have them.
    for (const MigSlice& s : present)
      if (!is_held(s)) (void)partitioner_->destroy(*target, s, held);
    made = partitioner_->create(*target, *grant.profile, grant.start);
  }
  return made;
}

Result<void> GpuWork::add(const AttemptKey& key, const GpuGrant& grant,
                          runtime::LaunchRequest& request, std::vector<HandedDevice>& devices) {
  const GpuDevice* gpu = find(grant.gpu);
  if (gpu == nullptr)
    return fail(ErrorCode::unavailable, fmt::format("GPU {} is not there", grant.gpu));
  if (!grant.profile) {
    ASSIGN(files, gpu::device_files(numbers_, *gpu));
    const GpuHolders::Device whole{fmt::format("GPU {}", gpu->index), gpu->uuid,
                                   ByteCount{gpu->memory}};
    TRY(holders_.take(key, whole, grant.of_device(), request));
    TRY(add_files(*files, request));
    held_[key].push_back(gpu->uuid);
    devices.push_back(handed(*gpu, nullptr));
    return {};
  }
  ASSIGN(slice, slice_for(*gpu, grant));
  const GpuHolders::Device device{fmt::format("the slice at {} of GPU {}", grant.start, grant.gpu),
                                  slice->uuid, slice_memory(found_.inventory, *gpu, *slice)};
  TRY(holders_.take(key, device, grant.of_device(), request));
  held_[key].push_back(slice->uuid);
  look();  // the capability files have no numbers before this
  gpu = find(grant.gpu);
  if (gpu == nullptr) return fail(ErrorCode::unavailable, fmt::format("GPU {} is gone", grant.gpu));
  ASSIGN(files, gpu::device_files(numbers_, *gpu, *slice));
  TRY(add_files(*files, request));
  devices.push_back(handed(*gpu, &*slice));
  return {};
}

// Adds the driver's files from the node if no CDI specification describes the job's devices.
void GpuWork::add_driver(runtime::LaunchRequest& request) {
  for (gpu::DriverFile& file : gpu::driver_files(nvml_->file(), gpu::kProgramFolders))
    request.mounts.push_back(
        {std::move(file.path), std::move(file.source), "", {"ro", "nosuid", "nodev", "bind"}});
}

// Adds the driver's libraries and hooks for a job with its own root file system.
Result<void> GpuWork::add_cdi(const std::vector<HandedDevice>& devices,
                              runtime::LaunchRequest& request) {
  constexpr std::string_view kKind = "nvidia.com/gpu=";
  const gpu::CdiRegistry registry = gpu::read_cdi(options_.cdi_dirs);
  for (const std::string& problem : registry.problems) log_.warning("CDI", {{"why", problem}});
  std::vector<std::string> names;
  for (const HandedDevice& device : devices) {
    const std::string index = std::to_string(device.gpu);
    for (const std::string& name : {device.uuid, std::string("all"), index})
      if (registry.devices.contains(std::string(kKind) + name)) {
        names.push_back(std::string(kKind) + name);
        break;
      }
  }
  if (names.empty()) {
    add_driver(request);
    return {};
  }
  ASSIGN(merged, gpu::merge_cdi(registry, names));
  gpu::CdiEdits edits = gpu::fit_for_job(std::move(*merged), gpu::CdiNodes::dropped);
  for (const std::string& one : edits.env) {
    const auto at = one.find('=');
    request.env[one.substr(0, at)] = at == std::string::npos ? "" : one.substr(at + 1);
  }
  for (gpu::CdiMount& m : edits.mounts)
    request.mounts.push_back(
        {std::move(m.container), std::move(m.host), std::move(m.type), std::move(m.options)});
  for (gpu::CdiHook& h : edits.hooks)
    request.hooks.push_back(
        {std::move(h.stage), std::move(h.path), std::move(h.args), std::move(h.env), h.timeout_s});
  request.device_gids = std::move(edits.gids);
  return {};
}

namespace {

// Puts numbers into CUDA_VISIBLE_DEVICES. The job cannot open the other GPUs of the node, so the
// CUDA runtime numbers the job's GPUs from 0 on, in the order of their PCI addresses, which is that
// of the node's indexes. A slice has no number, and the daemon that serves parts of a GPU may use
// other numbers.
void number_gpus(const std::vector<GpuGrant>& grants, std::vector<std::uint32_t> indices,
                 runtime::LaunchRequest& request) {
  const bool whole =
      std::ranges::all_of(grants, [](const GpuGrant& g) { return !g.profile && !g.part(); });
  if (!whole || indices.size() != request.visible_gpus.size()) return;
  std::vector<std::uint32_t> sorted = indices;
  std::ranges::sort(sorted);
  std::string list;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto at = std::ranges::lower_bound(sorted, indices[i]) - sorted.begin();
    request.visible_gpus[i].shown = std::to_string(at);
    list += (i > 0 ? "," : "") + request.visible_gpus[i].shown;
  }
  request.env["CUDA_VISIBLE_DEVICES"] = std::move(list);
}

}  // namespace

Result<GpuPrepared> GpuWork::prepare(const AttemptKey& key, const std::vector<GpuGrant>& grants,
                                     runtime::LaunchRequest request) {
  if (found_.inventory.gpus.empty())
    return fail(ErrorCode::unavailable, "no GPUs: " + found_.inventory.why_none);
  std::vector<HandedDevice> devices;
  for (const GpuGrant& grant : grants) TRY(add(key, grant, request, devices));
  ASSIGN(common, gpu::common_device_files(numbers_));
  TRY(add_files(*common, request));
  if (!request.container.image.empty()) TRY(add_cdi(devices, request));
  std::vector<std::string> uuids;
  std::vector<std::uint32_t> indices;
  std::vector<std::int32_t> numa;  // NUMA node of each device's GPU
  for (const HandedDevice& device : devices) {
    uuids.push_back(device.uuid);
    numa.push_back(found_.inventory.gpus.at(device.gpu).numa);
    runtime::VisibleGpu& visible =
        request.visible_gpus.emplace_back(runtime::VisibleGpu{device.uuid, numa.back()});
    // There is one device for each grant.
    const GpuDevice* whole = grants.at(uuids.size() - 1).profile ? nullptr : find(device.gpu);
    if (whole != nullptr)
      if (const auto files = gpu::device_files(numbers_, *whole))
        for (const gpu::DeviceFile& file : *files) visible.files.push_back(file.path);
    if (indices.empty() || indices.back() != device.gpu) indices.push_back(device.gpu);
  }
  const std::string list = fmt::format("{}", fmt::join(uuids, ","));
  request.env["CUDA_VISIBLE_DEVICES"] = list;
  if (request.gpu_names == GpuNames::index) number_gpus(grants, indices, request);
  request.env["NVIDIA_VISIBLE_DEVICES"] = list;
  request.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  request.state("GANTRY_GPU_NUMA", fmt::format("{}", fmt::join(numa, ",")));
  const std::string numbers = fmt::format("{}", fmt::join(indices, ","));
  request.env["GPU_DEVICE_ORDINAL"] = numbers;
  for (const std::string prefix : {"SLURM_", "GANTRY_"}) {
    request.state(prefix + "JOB_GPUS", numbers);
    request.state(prefix + "GPUS_ON_NODE", std::to_string(uuids.size()));
  }
  std::erase_if(devices, [&](const HandedDevice& d) { return !holders_.alone(key, d.uuid); });
  return GpuPrepared{std::move(request), std::move(devices)};
}

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
      // If the driver does not report how busy a slice is, a slice with a process counts as busy.
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
    // A fault that only a reset repairs affects the next job no more than the one before.
    std::erase_if(report.faults, [](const GpuFault& f) { return gpu::can_wait(f); });
    if (!report.faults.empty())
      out[i].fault = report.faults.front();
    else
      out[i].left = report.why(gpu::kIdleMemory);
  }
  return out;
}

}  // namespace gantry::node
