#include "noded/gpu/health/health.h"

#include <fmt/core.h>

#include <algorithm>

namespace gantry::gpu {

using nvml::Return;

namespace {

// Corrected errors since the last reset; more than this are suspicious.
constexpr std::uint64_t kSeldomTooMany = 100'000;

class Faults {
 public:
  explicit Faults(Instant now) : now_(now) {}
  void add(FaultDomain domain, std::string cause) {
    list.push_back({domain, std::move(cause), 0, now_});
  }
  std::vector<GpuFault> list;

 private:
  Instant now_;
};

// Reads NVML's field 230, the action that the driver recommends.
void check_recovery(const Nvml& nvml, nvml::Device device, Faults& faults) {
  const auto action = nvml.recovery_action(device);
  if (!action || *action == 0) return;
  switch (*action) {
    case 1: return faults.add(FaultDomain::gpu, "gpu-recovery: the driver asks for a reset");
    case 2:
      return faults.add(FaultDomain::node,
                        "gpu-recovery: the driver asks for a restart of the node");
    case 3:
      return faults.add(FaultDomain::gpu,
                        "gpu-recovery: the driver asks to end the jobs of linked GPUs");
    default:
      return faults.add(FaultDomain::gpu,
                        "gpu-recovery: the driver asks to end the jobs and for a reset");
  }
}

void check_memory(const Nvml& nvml, nvml::Device device, Faults& faults) {
  if (const auto rows = nvml.remapped_rows(device)) {
    if (rows->failed)
      faults.add(FaultDomain::gpu, "gpu-row-remap: no spare memory row is left for a broken one");
    else if (rows->pending)
      faults.add(FaultDomain::gpu, "gpu-row-remap: a memory row waits for a reset to be remapped");
  }
  if (nvml.retirement_pending(device).value_or(false))
    faults.add(FaultDomain::gpu, "gpu-retired-pages: memory pages wait for a reset to be retired");
  const auto corrected =
      nvml.ecc_errors(device, nvml::EccKind::corrected, nvml::EccSince::reset).value_or(0);
  if (corrected > kSeldomTooMany)
    faults.add(FaultDomain::none,
               fmt::format("gpu-ecc: {} corrected memory errors since the last reset", corrected));
  const auto uncorrected =
      nvml.ecc_errors(device, nvml::EccKind::uncorrected, nvml::EccSince::reset).value_or(0);
  if (uncorrected > 0)
    faults.add(FaultDomain::none,
               fmt::format("gpu-ecc: {} uncorrected memory error{} since the last reset",
                           uncorrected, uncorrected == 1 ? "" : "s"));
}

void check_thermal(const Nvml& nvml, nvml::Device device, Faults& faults) {
  const auto celsius = nvml.temperature(device);
  const auto limit = nvml.temperature_limit(device, nvml::TemperatureLimit::shutdown);
  if (celsius && limit && *limit > 0 && *celsius >= *limit)
    faults.add(
        FaultDomain::gpu,
        fmt::format("gpu-thermal: {} C, and it switches itself off at {} C", *celsius, *limit));
  const auto reasons = nvml.clock_reasons(device).value_or(0);
  if ((reasons & (nvml::kClocksHwThermal | nvml::kClocksSwThermal)) != 0)
    faults.add(FaultDomain::none,
               fmt::format("gpu-thermal: slowed down at {} C", celsius.value_or(0)));
  if ((reasons & nvml::kClocksPowerBrake) != 0)
    faults.add(FaultDomain::none, "gpu-power-brake: slowed down by the power supply");
}

std::uint32_t active_links(const Nvml& nvml, nvml::Device device) {
  std::uint32_t links = 0;
  for (std::uint32_t link = 0; link < nvml::kMostNvLinks; ++link) {
    const auto active = nvml.link_active(device, link);
    if (!active) break;
    links += *active ? 1 : 0;
  }
  return links;
}

}  // namespace

HealthBaseline HealthBaseline::of(const Nvml& nvml, nvml::Device device) {
  return {active_links(nvml, device)};
}

std::vector<GpuFault> check(const Nvml& nvml, nvml::Device device, const HealthBaseline& baseline,
                            Instant now) {
  Faults faults(now);
  const Answer<MemoryUse> alive =
      device != nullptr ? nvml.memory(device) : tl::unexpected(Failure{Return::gpu_is_lost, ""});
  if (!alive && alive.error().code != Return::not_supported) {
    const bool lost = alive.error().code == Return::gpu_is_lost;
    faults.add(FaultDomain::gpu, lost ? std::string("gpu-lost: fallen off the bus")
                                      : "gpu-no-answer: " + to_string(alive.error()));
    return faults.list;
  }
  check_recovery(nvml, device, faults);
  check_memory(nvml, device, faults);
  check_thermal(nvml, device, faults);
  if (const auto links = active_links(nvml, device); links < baseline.links)
    faults.add(FaultDomain::gpu, fmt::format("gpu-nvlink: {} of {} links are down",
                                             baseline.links - links, baseline.links));
  return faults.list;
}

bool can_wait(const GpuFault& fault) {
  for (const std::string_view start :
       {"gpu-row-remap:", "gpu-retired-pages:", "gpu-nvlink:", "gpu-recovery:"})
    if (fault.cause.starts_with(start)) return true;
  return false;
}

ProbeReport probe(const Nvml& nvml, nvml::Device device, const HealthBaseline& baseline,
                  const MigSlice* slice, Instant now) {
  ProbeReport out;
  out.faults = check(nvml, device, baseline, now);
  std::erase_if(out.faults, [](const GpuFault& f) { return f.domain == FaultDomain::none; });
  if (!out.faults.empty()) return out;
  const auto no_answer = [&](const Failure& failure) {
    out.faults.push_back({slice != nullptr ? FaultDomain::slice : FaultDomain::gpu,
                          "gpu-no-answer: " + to_string(failure),
                          slice != nullptr ? slice->gpu_instance : 0, now});
    return out;
  };
  nvml::Device target = device;
  if (slice != nullptr) {
    const auto all = nvml.mig_devices(device);
    if (!all) return no_answer(all.error());
    const auto found =
        std::ranges::find_if(*all, [&](auto& one) { return one.uuid == slice->uuid; });
    if (found == all->end()) return no_answer({Return::not_found, "nvmlDeviceGetUUID"});
    target = found->device;
  }
  const auto processes = nvml.processes(target);
  if (!processes) return no_answer(processes.error());
  for (const nvml::ProcessInfo& one : *processes) out.left.push_back(one.pid);
  const auto memory = nvml.memory(target);
  if (!memory && memory.error().code != Return::not_supported) return no_answer(memory.error());
  out.memory_used = memory.value_or(MemoryUse{}).used;
  return out;
}

std::string ProbeReport::why(std::uint64_t may_be_used) const {
  std::string text;
  const auto add = [&](const std::string& clause) { text += (text.empty() ? "" : "; ") + clause; };
  for (const GpuFault& fault : faults) add(fault.cause);
  for (const std::uint32_t pid : left) add(fmt::format("process {} is left on it", pid));
  if (left.empty() && memory_used > may_be_used)
    add(fmt::format("{} MiB of its memory are in use by no process", memory_used >> 20));
  return text;
}

using nvml::Return;

Result<std::unique_ptr<EventReader>> EventReader::open(const Nvml& nvml, const Discovery& found) {
  const auto set = nvml.create_event_set();
  if (!set) return fail_nvml("events of GPUs", set.error());
  std::unique_ptr<EventReader> out(new EventReader(nvml, *set, found.devices));
  constexpr std::uint64_t kWanted = nvml::kEventXid | nvml::kEventDoubleBitEcc |
                                    nvml::kEventUnavailable | nvml::kEventRecoveryAction;
  for (const nvml::Device device : found.devices) {
    if (device == nullptr) continue;  // a known GPU that is gone
    // Old drivers refuse event types that they do not know; all of them know the Xid event.
    const std::uint64_t types = nvml.event_types(device).value_or(nvml::kEventXid) & kWanted;
    if (auto done = nvml.register_events(device, types | nvml::kEventXid, *set);
        !done && done.error().code != Return::gpu_is_lost)
      return fail_nvml("events of GPUs", done.error());
  }
  return out;
}

EventReader::~EventReader() {
  nvml_.free(set_);
}

Answer<std::optional<GpuEvent>> EventReader::wait(std::uint32_t timeout_ms) {
  const auto data = nvml_.wait(set_, timeout_ms);
  if (!data && data.error().code == Return::gpu_is_lost) {
    // The driver does not tell which GPU is lost, so each is checked.
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const auto alive = devices_[i] != nullptr ? nvml_.memory(devices_[i]) : Answer<MemoryUse>();
      if (alive || alive.error().code != Return::gpu_is_lost) continue;
      devices_[i] = nullptr;  // its loss is reported only once
      return GpuEvent{static_cast<std::uint32_t>(i), {}, true};
    }
    return tl::unexpected(data.error());
  }
  if (!data) return tl::unexpected(data.error());
  if (!*data) return std::nullopt;
  const auto at = std::ranges::find(devices_, (*data)->device);
  if (at == devices_.end()) return std::nullopt;
  GpuEvent event;
  event.gpu = static_cast<std::uint32_t>(at - devices_.begin());
  event.lost = (*data)->type == nvml::kEventUnavailable;
  if ((*data)->type == nvml::kEventXid) event.xid.xid = static_cast<std::uint32_t>((*data)->data);
  if ((*data)->gpu_instance != nvml::kNoInstance) event.xid.gpu_instance = (*data)->gpu_instance;
  return event;
}

struct EventThread::Watch {
  std::function<void(const GpuEvent&)> sink;
  std::function<void(const Failure&)> failed;
  // Declared last, so destroyed first: the functions may own its library.
  std::unique_ptr<EventReader> reader;
};

EventThread::EventThread(std::unique_ptr<EventReader> reader,
                         std::function<void(const GpuEvent&)> sink,
                         std::function<void(const Failure&)> failed) {
  wait(thread_,
       std::make_shared<Watch>(Watch{std::move(sink), std::move(failed), std::move(reader)}));
}

// Each wait is a separate task, so that the thread can be ended between two waits.
void EventThread::wait(DriverThread& thread, const std::shared_ptr<Watch>& watch) {
  thread.post([&thread, watch] {
    const auto event = watch->reader->wait(kWaitMs);
    if (!event) return watch->failed(event.error());
    if (*event) watch->sink(**event);
    wait(thread, watch);
  });
}

}  // namespace gantry::gpu
