// Is a GPU well? Events as they come, checks in between, and a probe before and after a job. What
// is found is a GpuFault with a cause that begins with a word to look for: "gpu-xid-79: ...",
// "gpu-lost", "gpu-ecc", "gpu-row-remap", "gpu-retired-pages", "gpu-recovery", "gpu-thermal",
// "gpu-power-brake", "gpu-nvlink", "gpu-no-answer".
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
  XidEvent xid;           // xid 0: no Xid, look with check()
  bool lost = false;      // the driver itself says that the GPU is gone
};

// One event set over all GPUs of a discovery. Events from before it was opened are not seen.
class EventReader {
 public:
  static Result<std::unique_ptr<EventReader>> open(const Nvml& nvml, const Discovery& found);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  // The next one; nothing when none came in time. An error is about the driver as a whole.
  Answer<std::optional<GpuEvent>> wait(std::uint32_t timeout_ms);

 private:
  EventReader(const Nvml& nvml, nvml::EventSet set, std::vector<nvml::Device> devices)
      : nvml_(nvml), set_(set), devices_(std::move(devices)) {}
  const Nvml& nvml_;
  nvml::EventSet set_;
  std::vector<nvml::Device> devices_;  // by index
};

// A thread of its own around it, as NVML's wait can be given no descriptor. `sink` is called on
// that thread; `failed` once, when the driver gives no more events. A thread that the driver does
// not let go is left behind (driver_thread.h): the functions own what they need, and the library.
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

// What a GPU in order looked like, to compare with.
struct HealthBaseline {
  std::uint32_t links = 0;  // NVLinks that were up
  static HealthBaseline of(const Nvml& nvml, nvml::Device device);
};

// Everything wrong with it now; `since` is `now`. Domain none: worth telling, but the GPU may be
// used. Of the others some `can_wait` for the end of the jobs that are on it: memory that is only
// mended by a reset, links that are down.
std::vector<GpuFault> check(const Nvml& nvml, nvml::Device device, const HealthBaseline& baseline,
                            Instant now);
bool can_wait(const GpuFault& fault);

// ---- probes

struct ProbeReport {
  std::vector<GpuFault> faults;     // of check(), but domain none
  std::vector<std::uint32_t> left;  // pids of processes that should not be there
  std::uint64_t memory_used = 0;    // bytes
  [[nodiscard]] bool ok(std::uint64_t may_be_used) const {
    return faults.empty() && left.empty() && memory_used <= may_be_used;
  }
  // "" when ok; else one clause for each thing that is wrong.
  [[nodiscard]] std::string why(std::uint64_t may_be_used) const;
};

// Memory that an idle GPU or slice may have in use: what the driver keeps for contexts of its own.
inline constexpr std::uint64_t kIdleMemory = std::uint64_t{1} << 30;

// Of a whole GPU, or of one slice of it (`slice` set): only that slice's processes and memory
// count.
ProbeReport probe(const Nvml& nvml, nvml::Device device, const HealthBaseline& baseline,
                  const MigSlice* slice, Instant now);

}  // namespace gantry::gpu
