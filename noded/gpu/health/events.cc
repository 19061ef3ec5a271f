// Reads events of GPUs from NVML's event sets.
#include <algorithm>

#include "noded/gpu/health/health.h"

namespace gantry::gpu {

using nvml::Return;

Result<std::unique_ptr<EventReader>> EventReader::open(const Nvml& nvml, const Discovery& found) {
  const auto set = nvml.create_event_set();
  if (!set) return fail_nvml("events of GPUs", set.error());
  std::unique_ptr<EventReader> out(new EventReader(nvml, *set, found.devices));
  constexpr std::uint64_t kWanted = nvml::kEventXid | nvml::kEventDoubleBitEcc |
                                    nvml::kEventUnavailable | nvml::kEventRecoveryAction;
  for (const nvml::Device device : found.devices) {
    if (device == nullptr) continue;  // known, but gone
    // Old drivers refuse event types that they do not know; all of them know the Xid.
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
    // The driver does not say which GPU is lost, so each is asked.
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const auto alive = devices_[i] != nullptr ? nvml_.memory(devices_[i]) : Answer<MemoryUse>();
      if (alive || alive.error().code != Return::gpu_is_lost) continue;
      devices_[i] = nullptr;  // its loss is reported once
      return GpuEvent{static_cast<std::uint32_t>(i), {}, true};
    }
    return tl::unexpected(data.error());
  }
  if (!data) return tl::unexpected(data.error());
  if (!*data) return std::nullopt;
  const auto at = std::find(devices_.begin(), devices_.end(), (*data)->device);
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

// Each wait is a piece of work of its own, so that the thread can be ended between two waits.
void EventThread::wait(DriverThread& thread, const std::shared_ptr<Watch>& watch) {
  thread.post([&thread, watch] {
    const auto event = watch->reader->wait(kWaitMs);
    if (!event) return watch->failed(event.error());
    if (*event) watch->sink(**event);
    wait(thread, watch);
  });
}

}  // namespace gantry::gpu
