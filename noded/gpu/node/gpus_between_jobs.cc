// The part of Gpus about passing devices from one job to the next, and about what jobs use; see
// gpus.h and gpu_handover.h.
#include <fmt/core.h>

#include <algorithm>

#include "noded/gpu/node/gpus.h"
#include "noded/runtime/job_dir.h"

namespace gantry::node {

namespace {

// The tenant name in KnownGpus::memory for memory that was overwritten.
constexpr std::string_view kNobodys = "-";

std::string owner_of(const std::string& tenant) {
  return "=" + tenant;
}

std::vector<std::string> variables_of(const AttemptKey& key) {
  return {fmt::format("GANTRY_JOB_ID={}", key.job.value()),
          fmt::format("SLURM_JOB_ID={}", key.job.value())};
}

}  // namespace

void Gpus::open_handover(const NodedConfig& config, const std::string& bin_dir) {
  GpuHandover::Options options;
  options.scrubbing = config.gpu_scrub;
  options.scrub_program = bin_dir + "/gantry-gpu-scrub";
  options.cuda_library = for_node(config.cuda_library, node_);
  options.probe_program = for_node(config.gpu_probe, node_);
  options.patience = times_.patience;
  handover_ = std::make_unique<GpuHandover>(
      options, loop_,
      [this](const std::vector<HandedDevice>& devices, const GpuHandover::Looked& looked) {
        post([devices, looked, outlet = outlet_](GpuWork& work) {
          auto seen = std::make_shared<std::vector<GpuHandover::Seen>>(work.look_at(devices));
          outlet->post([seen, looked] { looked(std::move(*seen)); });
        });
      });
}

// ---- before a job

// Whether an admitted job is being prepared on the GPU.
bool Gpus::prepares_on(std::uint32_t gpu) const {
  return std::ranges::any_of(preparing_, [&](const auto& one) {
    const auto given = given_.find(one.first);
    return given != given_.end() && std::ranges::find(given->second, gpu) != given->second.end() &&
           std::ranges::none_of(waiting_, [&](const Waiting& w) { return w.key == one.first; });
  });
}

void Gpus::admit() {
  for (std::size_t i = 0; i < waiting_.size();) {
    const bool wanted = preparing_.contains(waiting_[i].key);
    const bool busy = std::ranges::any_of(waiting_[i].grants, [&](const GpuGrant& g) {
      // A job with a part also waits until it is clear what its device's first job finds there.
      return handover_->busy(g.gpu, g.profile && !g.part()) || (g.part() && prepares_on(g.gpu));
    });
    if (wanted && busy) {
      ++i;
      continue;
    }
    Waiting one = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    if (wanted) start_preparing(std::move(one));
  }
}

void Gpus::start_preparing(Waiting&& one) {
  auto asked = std::make_shared<Waiting>(std::move(one));
  post([this, asked, outlet = outlet_](GpuWork& work) {
    auto made = std::make_shared<Result<GpuPrepared>>(
        work.prepare(asked->key, asked->grants, std::move(asked->request)));
    if (!*made) work.release(asked->key);
    outlet->post([this, key = asked->key, made] { prepared(key, std::move(*made)); });
  });
}

void Gpus::prepared(const AttemptKey& key, Result<GpuPrepared>&& made) {
  if (!preparing_.contains(key)) return;  // the start of the job was given up meanwhile
  if (!made) {
    fail_preparing(key, made.error());
    return admit();
  }
  std::vector<HandedDevice> devices = std::move(made->fresh);
  const std::string owner = owner_of(made->request.sharing.tenant);
  for (HandedDevice& device : devices)
    device.scrub = !is_memory_of(device, owner) && !is_memory_of(device, std::string(kNobodys));
  auto request = std::make_shared<runtime::LaunchRequest>(std::move(made->request));
  if (devices.empty()) {
    handed(key, std::move(*request), {}, {});
    return admit();
  }
  handover_->run(HandoverWhen::before, devices, variables_of(key),
                 [this, key, request, devices](GpuHandover::Outcome&& outcome) {
                   handed(key, std::move(*request), devices, std::move(outcome));
                   admit();
                 });
}

void Gpus::handed(const AttemptKey& key, runtime::LaunchRequest&& request,
                  const std::vector<HandedDevice>& devices, GpuHandover::Outcome&& outcome) {
  const bool well = outcome.faults.empty();
  const std::string why = well ? "" : outcome.faults.front().fault.cause;
  // The fault, and so the cause, is reported before the failed start.
  take_faults(std::move(outcome.faults));
  const auto at = preparing_.find(key);
  if (at == preparing_.end()) return;
  if (!well) {
    post([key](GpuWork& work) { work.release(key); });
    return fail_preparing(key, {ErrorCode::unavailable, why});
  }
  for (const HandedDevice& device : devices)
    set_memory_of(device, owner_of(request.sharing.tenant));
  if (!devices.empty()) remember();
  for (const runtime::LaunchGpu& gpu : outcome.gpus)
    if (gpu.scrub != GpuScrub::not_needed)
      log_.info("memory of a GPU between two tenants", {{"job", key.job},
                                                        {"gpu", gpu.gpu},
                                                        {"scrub", enum_name(gpu.scrub)},
                                                        {"what", gpu.note}});
  request.gpus = std::move(outcome.gpus);
  handed_[key] = request.gpus;
  post([key](GpuWork& work) { work.begin_use(key); });
  const Prepared done = std::move(at->second);
  preparing_.erase(at);
  done(std::move(request));
}

void Gpus::fail_preparing(const AttemptKey& key, const Error& why) {
  const auto at = preparing_.find(key);
  const Prepared done = std::move(at->second);
  preparing_.erase(at);
  given_.erase(key);
  done(tl::unexpected(why));
}

// ---- after a job

void Gpus::finish(const AttemptKey& key, Finished done) {
  const bool has_some = given_.contains(key) || held_.contains(key);
  if (work_ == nullptr || silent_since_ || !has_some) return done({});
  finishing_[key] = std::move(done);
  post([this, key, outlet = outlet_](GpuWork& work) {
    auto devices = std::make_shared<std::vector<HandedDevice>>(work.devices_of(key));
    auto usage = std::make_shared<std::vector<GpuUsage>>(work.finish(key));
    outlet->post(
        [this, key, devices, usage] { finished(key, std::move(*usage), std::move(*devices)); });
  });
}

void Gpus::finished(const AttemptKey& key, std::vector<GpuUsage>&& usage,
                    std::vector<HandedDevice>&& devices) {
  for (GpuUsage& one : usage) {
    one.node = node_;
    for (const runtime::LaunchGpu& gpu : handed_[key]) {
      if (gpu.uuid != one.uuid) continue;
      one.scrub = gpu.scrub;
      one.scrub_note = gpu.note;
    }
  }
  if (!devices.empty())
    handover_->run(HandoverWhen::after, std::move(devices), variables_of(key),
                   [this](GpuHandover::Outcome&& outcome) {
                     take_faults(std::move(outcome.faults));
                     admit();
                   });
  const auto at = finishing_.find(key);
  if (at == finishing_.end()) return;
  const Finished done = std::move(at->second);
  finishing_.erase(at);
  done(std::move(usage));
}

// ---- faults

void Gpus::take_faults(std::vector<GpuHandover::Fault>&& faults) {
  if (faults.empty()) return;
  for (GpuHandover::Fault& one : faults) {
    log_.error("a GPU is not handed on", {{"gpu", one.gpu_uuid}, {"why", one.fault.cause}});
    if (mended_by_handover(one.fault))
      add_sticky(one.gpu_uuid, one.fault);
    else  // the next check finds the fault too, or finds that it is gone
      checks_[one.gpu_uuid].push_back(std::move(one.fault));
  }
  tell();
}

void Gpus::repair(const GpuDevice& gpu, bool well, Instant now) {
  const auto at = sticky_.find(gpu.uuid);
  if (at == sticky_.end() || !well || handover_->busy(gpu.index, false)) return;
  for (Sticky& s : at->second) {
    if (!mended_by_handover(s.fault) || now - s.tried.value_or(s.fault.since) < times_.proof)
      continue;
    s.tried = now;
    HandedDevice device;
    device.gpu = gpu.index;
    device.gpu_uuid = device.uuid = gpu.uuid;
    device.scrub = s.fault.cause.starts_with(kNotScrubbed);
    if (s.fault.domain == FaultDomain::slice) {  // the fault is gone if the slice is gone
      const auto slice = std::ranges::find_if(gpu.slices, [&](const MigSlice& one) {
        return one.gpu_instance == s.fault.gpu_instance;
      });
      if (slice == gpu.slices.end()) return repaired(device, GpuFault(s.fault), {});
      device.uuid = slice->uuid;
      device.gpu_instance = slice->gpu_instance;
      device.slices = 0;  // the record of whose memory it has stays
    }
    handover_->run(HandoverWhen::repair, {device}, {},
                   [this, device, fault = s.fault](GpuHandover::Outcome&& outcome) {
                     repaired(device, fault, std::move(outcome));
                     admit();
                   });
    return;  // one repair at a time
  }
}

void Gpus::repaired(const HandedDevice& device, const GpuFault& fault,
                    GpuHandover::Outcome&& outcome) {
  if (!outcome.faults.empty()) return;
  if (!outcome.gpus.empty() && outcome.gpus.front().scrub == GpuScrub::done)
    set_memory_of(device, std::string(kNobodys));
  auto& all = sticky_[device.gpu_uuid];
  std::erase_if(all, [&](const Sticky& s) { return s.fault == fault; });
  if (all.empty()) sticky_.erase(device.gpu_uuid);
  log_.info("GPU is in service again", {{"gpu", device.gpu}, {"had", fault.cause}});
  tell();
}

// ---- which tenant had the memory

bool Gpus::is_memory_of(const HandedDevice& device, const std::string& owner) const {
  const auto at = known_.memory.find(device.gpu_uuid);
  if (at == known_.memory.end()) return false;
  for (std::uint32_t i = device.first; i < device.first + device.slices; ++i)
    if (i >= at->second.size() || at->second[i] != owner) return false;
  return true;
}

void Gpus::set_memory_of(const HandedDevice& device, const std::string& owner) {
  auto& slices = known_.memory[device.gpu_uuid];
  slices.resize(kMemorySlices);
  for (std::uint32_t i = device.first; i < device.first + device.slices; ++i)
    if (i < slices.size()) slices[i] = owner;
}

// ---- what jobs do

void Gpus::watch_use() {
  samples_timer_ = loop_.every(times_.sample, [this] {
    if (sample_posted_) return;
    sample_posted_ = true;
    post([this, outlet = outlet_](GpuWork& work) {
      auto seen = std::make_shared<std::vector<proto::GpuActivity>>(work.sample());
      outlet->post([this, seen] {
        sample_posted_ = false;
        activity_ = std::move(*seen);
      });
    });
  });
}

}  // namespace gantry::node
