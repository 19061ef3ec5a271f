// Exported functions for event sets. An event set belongs to this process; the events are in the
// shared state.
#include <time.h>

#include <algorithm>
#include <vector>

#include "tests/nvml/library.h"

using namespace gantry::fake;  // NOLINT: these are C functions
namespace nvml = gantry::gpu::nvml;

namespace {

struct Registered {
  std::uint32_t gpu;
  std::uint64_t types;
};

struct Set {
  std::uint64_t seen = 0;  // value of events_written up to which events were handed out
  std::vector<Registered> registered;
};

Set* set_of(nvml::EventSet handle) {
  return reinterpret_cast<Set*>(handle);
}

std::int64_t now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

// Takes the next event that this set waits for. Like the driver, it also returns events of a lost
// GPU.
bool take_event(State& state, Set& set, nvml::EventData& out) {
  if (state.events_written - set.seen > kMostEvents) set.seen = state.events_written - kMostEvents;
  while (set.seen < state.events_written) {
    const EventState& event = state.events[set.seen++ % kMostEvents];
    for (const Registered& one : set.registered) {
      if (one.gpu != event.gpu || (one.types & event.type) == 0) continue;
      out = {encode<nvml::Device>({HandleKind::gpu, event.gpu, 0, 0, 0}), event.type, event.data,
             event.gpu_instance, event.compute_instance};
      return true;
    }
  }
  return false;
}

constexpr std::uint64_t kAllTypes = nvml::kEventDoubleBitEcc | nvml::kEventXid |
                                    nvml::kEventUnavailable | nvml::kEventRecoveryAction;

}  // namespace

NVML_API Return nvmlEventSetCreate(nvml::EventSet* out) {
  const Entry entry("nvmlEventSetCreate");
  if (!entry.ok()) return entry.refused();
  auto* set = new Set;
  set->seen = entry.state().events_written;
  *out = reinterpret_cast<nvml::EventSet>(set);
  return Return::success;
}

NVML_API Return nvmlEventSetFree(nvml::EventSet handle) {
  delete set_of(handle);
  return Return::success;
}

NVML_API Return nvmlDeviceGetSupportedEventTypes(nvml::Device device, std::uint64_t* types) {
  return on_gpu("nvmlDeviceGetSupportedEventTypes", device, types, [&](State&, const GpuState&) {
    *types = kAllTypes;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceRegisterEvents(nvml::Device device, std::uint64_t types,
                                         nvml::EventSet handle) {
  return on_gpu("nvmlDeviceRegisterEvents", device, handle, [&](State&, const GpuState&) {
    if ((types & ~kAllTypes) != 0) return Return::not_supported;
    set_of(handle)->registered.push_back({gpu_of(device), types});
    return Return::success;
  });
}

NVML_API Return nvmlEventSetWait_v2(nvml::EventSet handle, nvml::EventData* out,
                                    std::uint32_t timeout_ms) {
  const std::int64_t until = now_ms() + timeout_ms;
  for (;;) {
    std::uint64_t seen = 0;
    {
      const Entry entry("nvmlEventSetWait_v2");
      if (!entry.ok()) return entry.refused();
      if (take_event(entry.state(), *set_of(handle), *out)) return Return::success;
      seen = set_of(handle)->seen;
    }
    const std::int64_t left = until - now_ms();
    if (left <= 0) return Return::timeout;
    wait_for_event(*session(), seen, static_cast<std::uint32_t>(left));
  }
}
NVML_API Return nvmlEventSetWait(nvml::EventSet handle, nvml::EventData* out,
                                 std::uint32_t timeout_ms) {
  return nvmlEventSetWait_v2(handle, out, timeout_ms);
}
