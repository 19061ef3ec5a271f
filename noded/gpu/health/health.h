// Decides whether a GPU works as it should: from the driver's events, from checks at intervals, and
// from probes before and after a job. Each problem is a GpuFault whose cause begins with a word to
// search for: "gpu-xid-79: ...", "gpu-lost", "gpu-ecc", "gpu-row-remap", "gpu-retired-pages",
// "gpu-recovery", "gpu-thermal", "gpu-power-brake", "gpu-nvlink", "gpu-no-answer".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "noded/gpu/driver_thread.h"
#include "noded/gpu/health/xid.h"
#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

// ---- events

struct GpuEvent {
  std::uint32_t gpu = 0;  // GpuDevice::index
  XidEvent xid;           // xid 0: the event is no Xid; call check()
  bool lost = false;      // the driver itself reports that the GPU is gone
};

// Reads one event set for all GPUs of a discovery. Events from before it was opened are not seen.
class EventReader {
 public:
  static Result<std::unique_ptr<EventReader>> open(const Nvml& nvml, const Discovery& found);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // Returns the next event, or nullopt if none came in time. An error concerns the driver as a
  // whole.
  Answer<std::optional<GpuEvent>> wait(std::uint32_t timeout_ms);

 private:
  EventReader(const Nvml& nvml, nvml::EventSet set, std::vector<nvml::Device> devices)
      : nvml_(nvml), set_(set), devices_(std::move(devices)) {}
  const Nvml& nvml_;
  nvml::EventSet set_;
  std::vector<nvml::Device> devices_;  // by index
};

// Runs an EventReader on a thread of its own, because NVML offers no descriptor to wait for. `sink`
// is called on that thread; `failed` is called once, when the driver delivers no more events. If a
// call of the driver never returns, the thread is abandoned (driver_thread.h), so the functions
// must own what they need, including the library.
class EventThread {
 public:
  EventThread(std::unique_ptr<EventReader> reader, std::function<void(const GpuEvent&)> sink,
              std::function<void(const Failure&)> failed);

 private:
  static constexpr std::uint32_t kWaitMs = 200;
  struct Watch;
  static void wait(DriverThread& thread, const std::shared_ptr<Watch>& watch);
  DriverThread thread_;
};

// ---- checks

// The state of a GPU without faults, for comparison.
struct HealthBaseline {
  std::uint32_t links = 0;  // NVLinks that were up
  static HealthBaseline of(const Nvml& nvml, nvml::Device device);
};

// Finds everything that is wrong with the GPU now; `since` is `now`. A fault with domain none is
// only reported, and the GPU may be used. Among the other faults, those with `can_wait` need no
// action before the jobs on the GPU have ended: for example memory that only a reset repairs, or
// links that are down.
std::vector<GpuFault> check(const Nvml& nvml, nvml::Device device, const HealthBaseline& baseline,
                            Instant now);
bool can_wait(const GpuFault& fault);

// ---- probes

struct ProbeReport {
  std::vector<GpuFault> faults;     // faults from check(), without those of domain none
  std::vector<std::uint32_t> left;  // pids of processes that should have ended
  std::uint64_t memory_used = 0;    // bytes
  [[nodiscard]] bool ok(std::uint64_t may_be_used) const {
    return faults.empty() && left.empty() && memory_used <= may_be_used;
  }
  // Returns "" if all is well; otherwise one clause for each problem.
  [[nodiscard]] std::string why(std::uint64_t may_be_used) const;
};

// Memory that may be in use on an idle GPU or slice: the driver keeps it for its own contexts.
inline constexpr std::uint64_t kIdleMemory = std::uint64_t{1} << 30;

// Probes a whole GPU, or one slice of it (`slice` set); then only that slice's processes and memory
// count.
ProbeReport probe(const Nvml& nvml, nvml::Device device, const HealthBaseline& baseline,
                  const MigSlice* slice, Instant now);

}  // namespace gantry::gpu
