#include "noded/gpu/node/gpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <set>

#include "noded/gpu/health/xid.h"
#include "noded/runtime/job_dir.h"

namespace gantry::node {
namespace {

constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";

std::string silence_cause(Duration silence) {
  return fmt::format("gpu-no-answer: the driver has not answered for {} s",
                     std::max<std::int64_t>(1, silence.seconds()));
}

template <class Known>
void since_as_before(GpuFault& fault, const Known& before) {
  for (const GpuFault& f : before)
    if (f.cause == fault.cause && f.gpu_instance == fault.gpu_instance) fault.since = f.since;
}

}  // namespace

std::string for_node(std::string text, const std::string& node) {
  if (const auto at = text.find("%n"); at != std::string::npos) text.replace(at, 2, node);
  return text;
}

Gpus::Gpus(const NodedConfig& config, const NodeConfig& declared, const std::string& boot_id,
           const std::string& bin_dir, loop::Loop& loop, const Logger& log, GpuTimes times)
    : loop_(loop), log_(log), times_(times), node_(declared.name), state_dir_(config.state_dir) {
  const std::string& node = declared.name;
  const std::string root = for_node(config.gpu_root, node);
  if (root != "/") roots_ = {root + "/dev", root + "/proc", root + "/sys"};
  if (config.gpu_library == "none") {
    told_.why_none = "noded.gpu_library is none";
    return;
  }
  load(boot_id);
  outlet_ = std::make_shared<gpu::Outlet>(loop);
  // The daemon waits for the first sight, because the registration contains it.
  auto first = std::make_shared<std::promise<GpuSight>>();
  auto is_first = std::make_shared<bool>(true);
  work_ = std::make_shared<GpuWork>(
      GpuWork::Options{for_node(config.gpu_library, node),
                       state_dir_,
                       config.run_dir + "/gpu-files-" + node,
                       roots_,
                       declared.mig_by_hand,
                       {declared.gpu_sharing, config.mps_control, config.run_dir + "/mps-" + node,
                        config.runtimes.empty() || config.runtimes.front() != "process"},
                       config.cdi_dirs,
                       times.sample},
      known_, log, [this, first, is_first, outlet = outlet_](GpuSight&& sight) {
        if (std::exchange(*is_first, false)) first->set_value(sight);
        auto kept = std::make_shared<GpuSight>(std::move(sight));
        outlet->post([this, kept] { saw(std::move(*kept)); });
      });
  thread_ = std::make_unique<gpu::DriverThread>();
  open_handover(config, bin_dir);
  auto sight = first->get_future();
  post([](GpuWork& work) { work.open(); });
  if (sight.wait_for(std::chrono::microseconds(times_.silence.us)) == std::future_status::ready) {
    saw(sight.get());
    read_log();
  } else {
    silent_since_ = runtime::wall_clock();
    seen_.gpus = known_.gpus;  // as they were before, because jobs may run there
    for (GpuDevice& gpu : seen_.gpus) gpu.faults.clear();
    if (seen_.gpus.empty()) seen_.why_none = "the driver does not answer";
    log_.error("the driver of the GPUs does not answer", {{"for_s", times_.silence.seconds()}});
  }
  tell();
}

Gpus::~Gpus() {
  if (outlet_) outlet_->shut();
  thread_.reset();
}

// Loads what an earlier daemon knew about the GPUs.
void Gpus::load(const std::string& boot_id) {
  if (auto known = gpu::load_known(state_dir_, boot_id))
    known_ = std::move(*known);
  else  // the indexes may change while jobs run
    log_.error("the numbers of GPUs are not known", {{"why", known.error().message}});
  known_.boot_id = boot_id;
  for (const GpuDevice& gpu : known_.gpus)
    for (const GpuFault& fault : gpu.faults) {
      if (fault.cause.starts_with("gpu-xid-") || mended_by_handover(fault))
        sticky_[gpu.uuid].push_back({fault, std::nullopt, std::nullopt});
      else
        checks_[gpu.uuid].push_back(fault);
    }
}

// Handles Xids from the time when no daemon received events. If an Xid would only end jobs, it is
// not known whether those jobs still run; so the GPU is closed until it is proved to work.
void Gpus::read_log() {
  // At the first start no job has run before.
  if (known_.gpus.empty() || known_.log_seen_us == 0) return;
  const auto logged = gpu::logged_xids(roots_.dev + "/kmsg", microseconds(known_.log_seen_us));
  const Instant now = runtime::wall_clock();
  const Duration time = runtime::since_boot();
  for (const gpu::LoggedXid& xid : logged)
    for (const GpuDevice& gpu : seen_.gpus) {
      if (gpu.pci != xid.line.pci) continue;
      const Instant at = now - (std::max(time, xid.at) - xid.at);
      gpu::XidOutcome outcome = gpu::judge({xid.line.xid, xid.line.gpu_instance}, at);
      if (outcome.fault.domain == FaultDomain::none && !outcome.end_jobs) continue;
      if (outcome.fault.domain == FaultDomain::none)
        outcome.fault.domain = xid.line.gpu_instance ? FaultDomain::slice : FaultDomain::gpu;
      log_.warning("GPU event while no daemon ran",
                   {{"gpu", gpu.index}, {"xid", xid.line.xid}, {"what", outcome.fault.cause}});
      add_sticky(gpu.uuid, outcome.fault);
    }
}

std::vector<std::uint32_t> Gpus::majors() const {
  std::set<std::uint32_t> out;
  const auto numbers = gpu::read_device_numbers(roots_);
  if (work_ == nullptr || !numbers) return {};
  for (const std::string_view name :
       {"nvidia", "nvidia-frontend", "nvidia-uvm", "nvidia-caps", "nvidia-caps-imex-channels",
        "nvidia-nvswitch", "nvidia-modeset"})
    if (const auto found = numbers->majors.find(name); found != numbers->majors.end())
      out.insert(found->second);
  return {out.begin(), out.end()};
}

// ---- jobs

void Gpus::prepare(const AttemptKey& key, const std::vector<GpuGrant>& grants,
                   runtime::LaunchRequest request, Prepared done) {
  if (told_.gpus.empty()) {
    if (grants.empty()) return done(std::move(request));
    return done(fail(ErrorCode::unavailable, "no GPUs: " + told_.why_none));
  }
  // Variables about GPUs of the machine where the job was submitted mean nothing here.
  request.env[std::string(kVisible)] = "";
  request.env["NVIDIA_VISIBLE_DEVICES"] = "void";
  request.env.erase("GPU_DEVICE_ORDINAL");
  std::erase_if(request.env, [](const auto& e) { return e.first.starts_with("CUDA_MPS_"); });
  if (grants.empty()) return done(std::move(request));
  if (silent_since_) return done(fail(ErrorCode::unavailable, silence_cause(times_.silence)));
  for (const GpuGrant& grant : grants) given_[key].push_back(grant.gpu);
  preparing_[key] = std::move(done);
  waiting_.push_back({key, grants, std::move(request)});
  admit();
}

void Gpus::recovered(const AttemptKey& key, const runtime::LaunchRequest& request) {
  if (request.visible_gpus.empty() || work_ == nullptr) return;
  std::vector<std::string> uuids;
  for (const runtime::VisibleGpu& gpu : request.visible_gpus) uuids.push_back(gpu.uuid);
  held_[key] = uuids;
  handed_[key] = request.gpus;
  post([key, uuids, sharing = request.sharing](GpuWork& work) { work.hold(key, uuids, sharing); });
  tell();  // reports a fault that can wait for the end of its job
}

void Gpus::released(const AttemptKey& key) {
  preparing_.erase(key);
  finishing_.erase(key);
  handed_.erase(key);
  if (given_.erase(key) + held_.erase(key) == 0) return;
  post([key](GpuWork& work) { work.release(key); });
  if (!changed_) return;
  const bool waited = std::ranges::any_of(told_.gpus, [](const GpuDevice& gpu) {
    return std::ranges::any_of(gpu.faults, gpu::can_wait);
  });
  if (!waited) return;
  post([](GpuWork& work) { work.check(); });
  tell();
}

bool Gpus::is_held(const GpuDevice& gpu) const {
  for (const auto& [key, indexes] : given_)
    if (std::ranges::find(indexes, gpu.index) != indexes.end()) return true;
  for (const auto& [key, uuids] : held_)
    for (const std::string& uuid : uuids)
      if (uuid == gpu.uuid ||
          std::ranges::any_of(gpu.slices, [&](const MigSlice& s) { return s.uuid == uuid; }))
        return true;
  return false;
}

void Gpus::declared_well(const std::string& uuid) {
  if (work_ == nullptr) return;
  sticky_.erase(uuid);
  log_.info("GPU is said to be well", {{"gpu", uuid}});
  // The change is reported only after a check, so that no job gets a GPU that is still broken in
  // between.
  post([](GpuWork& work) { work.check(); });
}

// ---- what is found

GpuInventory Gpus::with_faults() const {
  GpuInventory out = seen_;
  for (GpuDevice& gpu : out.gpus) {
    const auto add = [&](GpuFault fault) {
      const bool waits = gpu::can_wait(fault) && is_held(gpu);
      if (waits) fault.domain = FaultDomain::none;
      if (std::ranges::find(gpu.faults, fault) == gpu.faults.end())
        gpu.faults.push_back(std::move(fault));
    };
    if (const auto at = sticky_.find(gpu.uuid); at != sticky_.end())
      for (const Sticky& s : at->second) add(s.fault);
    if (const auto at = checks_.find(gpu.uuid); at != checks_.end())
      for (const GpuFault& fault : at->second) add(fault);
    if (silent_since_)
      add({is_held(gpu) ? FaultDomain::none : FaultDomain::gpu, silence_cause(times_.silence), 0,
           *silent_since_});
  }
  return out;
}

void Gpus::tell() {
  GpuInventory now = with_faults();
  if (now == told_) return;
  told_ = std::move(now);
  remember();
  if (changed_) changed_(told_);
}

void Gpus::remember() {
  known_.gpus = told_.gpus;
  known_.log_seen_us = runtime::since_boot().us;
  if (auto kept = gpu::store_known(state_dir_, known_); !kept)
    log_.error("the numbers of GPUs could not be kept", {{"why", kept.error().message}});
}

void Gpus::saw(GpuSight&& sight) {
  const Instant now = runtime::wall_clock();
  for (GpuDevice& gpu : sight.inventory.gpus)
    for (const GpuDevice& before : seen_.gpus)
      if (before.uuid == gpu.uuid)
        for (GpuFault& fault : gpu.faults) since_as_before(fault, before.faults);
  seen_ = std::move(sight.inventory);
  known_.links = std::move(sight.links);
  if (sight.checks) {
    check_posted_ = false;
    take_checks(std::move(*sight.checks), now);
  }
  tell();
}

void Gpus::take_checks(std::vector<Faults>&& checks, Instant now) {
  for (std::size_t i = 0; i < checks.size() && i < seen_.gpus.size(); ++i) {
    const GpuDevice& gpu = seen_.gpus[i];
    Faults& faults = checks[i];
    std::erase_if(faults, [](const GpuFault& f) { return f.domain == FaultDomain::none; });
    const bool well = faults.empty() && gpu.faults.empty();
    prove(gpu, well, now);
    repair(gpu, well, now);
    for (GpuFault& fault : faults) since_as_before(fault, checks_[gpu.uuid]);
    checks_[gpu.uuid] = std::move(faults);
  }
}

// Puts a GPU that had a fault, and has worked for a while, back into service.
void Gpus::prove(const GpuDevice& gpu, bool well, Instant now) {
  const auto at = sticky_.find(gpu.uuid);
  if (at == sticky_.end()) return;
  for (Sticky& s : at->second)
    s.well_since = well ? std::optional(s.well_since.value_or(now)) : std::nullopt;
  std::erase_if(at->second, [&](const Sticky& s) {
    if (mended_by_handover(s.fault) || !s.well_since || now - *s.well_since < times_.proof)
      return false;
    log_.info("GPU is in service again", {{"gpu", gpu.index}, {"had", s.fault.cause}});
    return true;
  });
  if (at->second.empty()) sticky_.erase(at);
}

void Gpus::watch(std::function<void(const GpuInventory&)> changed) {
  if (work_ == nullptr) return;
  changed_ = std::move(changed);
  changed_(told_);
  listen();
  checks_timer_ = loop_.every(times_.check, [this] {
    if (check_posted_) return;  // the last check has not ended yet
    check_posted_ = true;
    post([](GpuWork& work) { work.check(); });
  });
  silence_timer_ = loop_.every(std::min(times_.silence, seconds(1)), [this] { look_out(); });
  watch_use();
}

void Gpus::listen() {
  post([this, outlet = outlet_](GpuWork& work) {
    work.begin_watch(
        [this, outlet](const gpu::GpuEvent& event) {
          outlet->post([this, event] { take_event(event); });
        },
        [this, outlet](const std::string& why) {
          outlet->post([this, why] {
            log_.error("the driver gives no events; GPUs are looked at every 10 s", {{"why", why}});
          });
        });
  });
}

// Notices that the driver has stopped answering, or answers again.
void Gpus::look_out() {
  const auto busy = thread_->busy_for();
  const bool silent = busy && *busy >= times_.silence;
  if (silent == silent_since_.has_value()) return;
  if (silent) {
    silent_since_ = runtime::wall_clock() - *busy;
    log_.error("the driver of the GPUs does not answer", {{"for_s", busy->seconds()}});
  } else {
    silent_since_.reset();
    log_.info("the driver of the GPUs answers again");
  }
  tell();
  if (!silent) return;
  for (auto& [key, done] : std::exchange(preparing_, {})) {
    given_.erase(key);
    post([key = key](GpuWork& work) { work.release(key); });
    done(fail(ErrorCode::unavailable, silence_cause(times_.silence)));
  }
  for (auto& [key, done] : std::exchange(finishing_, {})) done({});
}

void Gpus::take_event(const gpu::GpuEvent& event) {
  const Instant now = runtime::wall_clock();
  const auto gpu =
      std::ranges::find_if(seen_.gpus, [&](const GpuDevice& g) { return g.index == event.gpu; });
  if (gpu == seen_.gpus.end()) return;
  gpu::XidOutcome outcome;
  if (event.xid.xid != 0)
    outcome = gpu::judge(event.xid, now);
  else if (event.lost)
    outcome.fault = {FaultDomain::gpu, "gpu-lost: the driver does not find it any more", 0, now};
  else
    return post([](GpuWork& work) { work.check(); });
  log_.warning("GPU event",
               {{"gpu", event.gpu}, {"xid", event.xid.xid}, {"what", outcome.fault.cause}});
  if (outcome.fault.domain != FaultDomain::none) {
    add_sticky(gpu->uuid, outcome.fault);
    return tell();
  }
  if (!outcome.end_jobs) return;
  GpuFault passing = outcome.fault;
  passing.domain = event.xid.gpu_instance ? FaultDomain::slice : FaultDomain::gpu;
  passing.gpu_instance = event.xid.gpu_instance.value_or(0);
  auto& sticky = sticky_[gpu->uuid];
  sticky.push_back({passing, std::nullopt, std::nullopt});
  tell();
  sticky.pop_back();
  tell();
}

// A fault that comes again must then be proved gone.
void Gpus::add_sticky(const std::string& uuid, const GpuFault& fault) {
  auto& all = sticky_[uuid];
  for (Sticky& s : all)
    if (s.fault.cause == fault.cause && s.fault.gpu_instance == fault.gpu_instance) {
      s.well_since.reset();
      return;
    }
  all.push_back({fault, std::nullopt, std::nullopt});
}

}  // namespace gantry::node
