#include "noded/gpus.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <set>

#include "noded/runtime/job_dir.h"

namespace gantry::node {
namespace {

constexpr Duration kCheckPeriod = seconds(10);
constexpr Duration kProof = seconds(60);  // without a fault, and the GPU is in service again
constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";

// %n in the text is the node's name: several nodes may live on one machine.
std::string for_node(std::string text, const std::string& node) {
  if (const auto at = text.find("%n"); at != std::string::npos) text.replace(at, 2, node);
  return text;
}

}  // namespace

Gpus::Gpus(const NodedConfig& config, const std::string& node, const std::string& boot_id,
           const Logger& log)
    : log_(log), state_dir_(config.state_dir), files_dir_(config.run_dir + "/gpu-files-" + node) {
  const std::string root = for_node(config.gpu_root, node);
  if (root != "/") roots_ = {root + "/dev", root + "/proc", root + "/sys"};
  if (config.gpu_library == "none") {
    found_.inventory.why_none = "noded.gpu_library is none";
    return;
  }
  auto opened = gpu::Nvml::open(for_node(config.gpu_library, node));
  if (!opened) {
    found_.inventory = gpu::no_gpus(opened.error());
    return;
  }
  nvml_ = std::move(*opened);
  if (auto known = gpu::load_known(state_dir_, boot_id))
    known_ = std::move(*known);
  else  // numbers would change under jobs that run
    log_.error("the numbers of GPUs are not known", {{"why", known.error().message}});
  known_.boot_id = boot_id;
  for (const GpuDevice& gpu : known_.gpus)
    for (const GpuFault& fault : gpu.faults)
      if (fault.cause.starts_with("gpu-xid-")) sticky_[gpu.uuid].push_back({fault, std::nullopt});
  look(runtime::wall_clock());
  for (const gpu::nvml::Device device : found_.devices)
    baselines_.push_back(device != nullptr ? gpu::HealthBaseline::of(*nvml_, device)
                                           : gpu::HealthBaseline{});
  if (gpu::mig_targets(found_).empty()) return;
  auto journal = gpu::MigJournal::open(config.state_dir + "/mig");
  if (journal)
    partitioner_ = std::make_unique<gpu::MigPartitioner>(*nvml_, std::move(*journal));
  else
    log_.error("slices cannot be made", {{"why", journal.error().message}});
}

void Gpus::look(Instant now) {
  found_ = gpu::discover(*nvml_, roots_, now);
  for (const std::string& warning : found_.warnings)  // each once, not at every look
    if (std::find(warned_.begin(), warned_.end(), warning) == warned_.end()) log_.warning(warning);
  warned_ = found_.warnings;
  auto numbers = gpu::read_device_numbers(roots_);
  if (numbers) {
    numbers_ = std::move(*numbers);
  } else if (!found_.inventory.gpus.empty()) {
    found_.inventory.gpus.clear();
    found_.inventory.why_none = numbers.error().message;
  }
  gpu::keep_indexes(found_, known_, now);
  for (GpuDevice& gpu : found_.inventory.gpus)
    if (const auto it = sticky_.find(gpu.uuid); it != sticky_.end())
      for (const Sticky& s : it->second) gpu.faults.push_back(s.fault);
  remember();
}

void Gpus::remember() {
  if (known_.gpus == inventory().gpus) return;
  known_.gpus = inventory().gpus;
  if (auto kept = gpu::store_known(state_dir_, known_); !kept)
    log_.error("the numbers of GPUs could not be kept", {{"why", kept.error().message}});
}

// What a daemon that died left half done; held slices are known by now.
void Gpus::finish_halves() {
  if (!partitioner_) return;
  const auto held = held_devices();
  const auto done = partitioner_->recover(gpu::mig_targets(found_), held);
  if (!done) return log_.error("slices", {{"why", done.error().message}});
  for (const std::string& what : *done) log_.info(what);
  if (!done->empty()) look(runtime::wall_clock());
}

std::vector<std::uint32_t> Gpus::majors() const {
  std::set<std::uint32_t> out;
  if (inventory().gpus.empty()) return {};
  for (const std::string_view name :
       {"nvidia", "nvidia-frontend", "nvidia-uvm", "nvidia-caps", "nvidia-caps-imex-channels",
        "nvidia-nvswitch", "nvidia-modeset"})
    if (const auto found = numbers_.majors.find(name); found != numbers_.majors.end())
      out.insert(found->second);
  return {out.begin(), out.end()};
}

std::vector<std::string> Gpus::held_devices() const {
  std::vector<std::string> out;
  for (const auto& [key, uuids] : held_) out.insert(out.end(), uuids.begin(), uuids.end());
  return out;
}

bool Gpus::is_held(const GpuDevice& gpu) const {
  const auto held = held_devices();
  const auto is_in = [&](const std::string& uuid) {
    return std::find(held.begin(), held.end(), uuid) != held.end();
  };
  return is_in(gpu.uuid) || std::any_of(gpu.slices.begin(), gpu.slices.end(),
                                        [&](const MigSlice& s) { return is_in(s.uuid); });
}

// The driver's file, or one of our own where there is none: nobody makes those of new slices.
Result<std::string> Gpus::file_of(const gpu::DeviceFile& file) const {
  const dev_t number = makedev(file.major, file.minor);
  const auto is_it = [&](const std::string& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == number;
  };
  std::string path = roots_.dev + file.path.substr(4);
  if (is_it(path)) return path;
  if (auto r = runtime::make_dirs(files_dir_, 0711); !r) return tl::unexpected(r.error());
  path = fmt::format("{}/{}-{}", files_dir_, file.major, file.minor);
  const mode_t mode = file.permissions.find('w') != std::string::npos ? 0666 : 0444;
  if (is_it(path)) return path;
  if (::mknod(path.c_str(), S_IFCHR | mode, number) != 0 || ::chmod(path.c_str(), mode) != 0)
    return runtime::fail_errno(ErrorCode::io_error, path);
  return path;
}

Result<void> Gpus::add_files(const std::vector<gpu::DeviceFile>& files,
                             runtime::LaunchRequest& request) const {
  for (const gpu::DeviceFile& file : files) {
    const bool known = std::any_of(request.devices.begin(), request.devices.end(),
                                   [&](const auto& d) { return d.path == file.path; });
    if (known) continue;
    auto source = file_of(file);
    if (!source) return tl::unexpected(source.error());
    request.devices.push_back(
        {file.path, std::move(*source), file.major, file.minor, file.permissions});
  }
  return {};
}

Result<MigSlice> Gpus::slice_for(const GpuDevice& gpu, const GpuGrant& grant) {
  const auto held = held_devices();
  const auto is_held = [&](const MigSlice& s) {
    return std::find(held.begin(), held.end(), s.uuid) != held.end();
  };
  const auto targets = gpu::mig_targets(found_);
  const auto target = std::find_if(targets.begin(), targets.end(),
                                   [&](const auto& t) { return t.gpu->uuid == gpu.uuid; });
  if (!partitioner_ || target == targets.end())
    return fail(ErrorCode::unavailable, fmt::format("GPU {} is not in MIG mode", grant.gpu));
  const auto size = [&](std::uint32_t profile) {
    const MigProfile* p = gpu::find_profile(*target->geometry, profile);
    return p != nullptr ? p->memory_slices : 0;
  };
  const std::vector<MigSlice> present = gpu.slices;
  for (const MigSlice& s : present)
    if (s.profile == *grant.profile && s.start == grant.start && !is_held(s)) return s;
  for (const MigSlice& s : present) {
    const bool in_the_way =
        s.start < grant.start + size(*grant.profile) && grant.start < s.start + size(s.profile);
    if (!in_the_way) continue;
    if (auto r = partitioner_->destroy(*target, s, held); !r) return tl::unexpected(r.error());
  }
  auto made = partitioner_->create(*target, *grant.profile, grant.start);
  if (!made && made.error().code == ErrorCode::wrong_state) {
    // Compute slices may be short although the place is free: idle slices elsewhere on the GPU have
    // them.
    for (const MigSlice& s : present)
      if (!is_held(s)) (void)partitioner_->destroy(*target, s, held);
    made = partitioner_->create(*target, *grant.profile, grant.start);
  }
  return made;
}

Result<void> Gpus::add(const AttemptKey& key, const GpuGrant& grant,
                       runtime::LaunchRequest& request, std::vector<std::string>& uuids) {
  const auto find = [&] {
    return std::find_if(inventory().gpus.begin(), inventory().gpus.end(),
                        [&](const GpuDevice& g) { return g.index == grant.gpu; });
  };
  auto gpu = find();
  if (gpu == inventory().gpus.end())
    return fail(ErrorCode::unavailable, fmt::format("GPU {} is not there", grant.gpu));
  if (!grant.profile) {
    const auto files = gpu::device_files(numbers_, *gpu);
    if (!files) return tl::unexpected(files.error());
    if (auto r = add_files(*files, request); !r) return r;
    held_[key].push_back(gpu->uuid);
    uuids.push_back(gpu->uuid);
    return {};
  }
  const auto slice = slice_for(*gpu, grant);
  if (!slice) return tl::unexpected(slice.error());
  held_[key].push_back(slice->uuid);
  look(runtime::wall_clock());  // capability files have numbers only now
  gpu = find();
  if (gpu == inventory().gpus.end())
    return fail(ErrorCode::unavailable, fmt::format("GPU {} is gone", grant.gpu));
  const auto files = gpu::device_files(numbers_, *gpu, *slice);
  if (!files) return tl::unexpected(files.error());
  if (auto r = add_files(*files, request); !r) return r;
  uuids.push_back(slice->uuid);
  return {};
}

Result<void> Gpus::prepare(const AttemptKey& key, const std::vector<GpuGrant>& grants,
                           runtime::LaunchRequest& request) {
  if (inventory().gpus.empty()) {
    if (grants.empty()) return {};
    return fail(ErrorCode::unavailable, "no GPUs: " + inventory().why_none);
  }
  // What the submitter's shell said of its own GPUs means nothing here.
  request.env[std::string(kVisible)] = "";
  request.env["NVIDIA_VISIBLE_DEVICES"] = "void";
  if (grants.empty()) return {};
  std::vector<std::string> uuids;
  std::vector<std::uint16_t> indices;
  const GpuInventory before = inventory();
  for (const GpuGrant& grant : grants) {
    if (auto r = add(key, grant, request, uuids); !r) {
      released(key);
      return r;
    }
    if (indices.empty() || indices.back() != grant.gpu) indices.push_back(grant.gpu);
  }
  if (inventory() != before) tell();
  const auto common = gpu::common_device_files(numbers_);
  if (!common) return tl::unexpected(common.error());
  if (auto r = add_files(*common, request); !r) return r;
  const std::string list = fmt::format("{}", fmt::join(uuids, ","));
  request.env[std::string(kVisible)] = list;
  request.env["NVIDIA_VISIBLE_DEVICES"] = list;
  request.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  const std::string numbers = fmt::format("{}", fmt::join(indices, ","));
  request.env["SLURM_JOB_GPUS"] = request.env["GANTRY_JOB_GPUS"] = numbers;
  request.env["GPU_DEVICE_ORDINAL"] = numbers;
  request.env["SLURM_GPUS_ON_NODE"] = request.env["GANTRY_GPUS_ON_NODE"] =
      std::to_string(uuids.size());
  return {};
}

void Gpus::recovered(const AttemptKey& key, const runtime::LaunchRequest& request) {
  const auto visible = request.env.find(std::string(kVisible));
  if (visible == request.env.end()) return;
  for (const std::string& uuid : runtime::split(visible->second, ','))
    if (!uuid.empty()) held_[key].push_back(uuid);
}

void Gpus::released(const AttemptKey& key) {
  if (held_.erase(key) == 0 || !changed_) return;
  const bool waited = std::any_of(inventory().gpus.begin(), inventory().gpus.end(), [](auto& gpu) {
    return std::any_of(gpu.faults.begin(), gpu.faults.end(), gpu::can_wait);
  });
  if (waited) check_all();
}

void Gpus::tell() {
  remember();
  if (changed_) changed_(inventory());
}

void Gpus::watch(loop::Loop& loop, std::function<void(const GpuInventory&)> changed) {
  if (nvml_ == nullptr) return;
  finish_halves();
  loop_ = &loop;
  changed_ = std::move(changed);
  tell();
  if (inventory().gpus.empty()) return;
  auto reader = gpu::EventReader::open(*nvml_, found_);
  if (!reader) {
    log_.warning("the driver gives no events; GPUs are looked at every 10 s",
                 {{"why", reader.error().message}});
  } else {
    events_ = std::make_unique<gpu::EventThread>(
        std::move(*reader),
        [this](const gpu::GpuEvent& event) { loop_->post([this, event] { take_event(event); }); },
        [this](const gpu::Failure& failure) {
          loop_->post([this, failure] {
            log_.error("the driver gives no more events", {{"why", gpu::to_string(failure)}});
          });
        });
  }
  checks_ = loop.every(kCheckPeriod, [this] { check_all(); });
}

void Gpus::take_event(const gpu::GpuEvent& event) {
  const Instant now = runtime::wall_clock();
  const auto gpu = std::find_if(found_.inventory.gpus.begin(), found_.inventory.gpus.end(),
                                [&](const GpuDevice& g) { return g.index == event.gpu; });
  if (gpu == found_.inventory.gpus.end()) return;
  gpu::XidOutcome outcome;
  if (event.xid.xid != 0)
    outcome = gpu::judge(event.xid, now);
  else if (event.lost)
    outcome.fault = {FaultDomain::gpu, "gpu-lost: the driver does not find it any more", 0, now};
  else
    return check_all();
  log_.warning("GPU event",
               {{"gpu", event.gpu}, {"xid", event.xid.xid}, {"what", outcome.fault.cause}});
  if (outcome.fault.domain != FaultDomain::none) {
    sticky_[gpu->uuid].push_back({outcome.fault, std::nullopt});
    gpu->faults.push_back(outcome.fault);
    return tell();
  }
  if (!outcome.end_jobs) return;
  GpuFault passing = outcome.fault;
  passing.domain = event.xid.gpu_instance ? FaultDomain::slice : FaultDomain::gpu;
  passing.gpu_instance = event.xid.gpu_instance.value_or(0);
  gpu->faults.push_back(passing);
  tell();
  gpu->faults.pop_back();
  tell();
}

// Every ten seconds: what the driver says without being asked for events, and whether a GPU that
// had a fault has been well for a minute.
void Gpus::check_all() {
  const Instant now = runtime::wall_clock();
  GpuInventory before = inventory();
  look(now);
  for (GpuDevice& gpu : found_.inventory.gpus) {
    if (found_.devices[gpu.index] == nullptr) continue;  // lost; it says so
    auto faults = gpu::check(
        *nvml_, found_.devices[gpu.index],
        gpu.index < baselines_.size() ? baselines_[gpu.index] : gpu::HealthBaseline{}, now);
    std::erase_if(faults, [](const GpuFault& f) { return f.domain == FaultDomain::none; });
    auto& sticky = sticky_[gpu.uuid];
    for (Sticky& s : sticky)
      s.well_since = faults.empty() ? std::optional(s.well_since.value_or(now)) : std::nullopt;
    const auto well = [&](const Sticky& s) {
      return s.well_since && now - *s.well_since >= kProof;
    };
    for (const Sticky& s : sticky)
      if (well(s)) {
        log_.info("GPU is in service again", {{"gpu", gpu.index}, {"had", s.fault.cause}});
        std::erase(gpu.faults, s.fault);
      }
    std::erase_if(sticky, well);
    for (GpuFault& fault : faults) {
      if (gpu::can_wait(fault) && is_held(gpu)) fault.domain = FaultDomain::none;
      // Of one that lasts, when it began.
      for (const GpuDevice& old : before.gpus)
        for (const GpuFault& f : old.faults)
          if (old.uuid == gpu.uuid && f.cause == fault.cause) fault.since = f.since;
      if (std::find(gpu.faults.begin(), gpu.faults.end(), fault) == gpu.faults.end())
        gpu.faults.push_back(fault);
    }
  }
  if (inventory() != before) tell();
}

}  // namespace gantry::node
