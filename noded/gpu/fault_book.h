// What is known to be wrong with each GPU: from events, which stay until the GPU is cleared, and
// from checks, which come and go. Decides only; watch.h feeds it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "noded/gpu/health.h"

namespace gantry::gpu {

// Something that happened, for the jobs there.
struct GpuIncident {
  std::uint32_t gpu = 0;  // GpuDevice::index
  XidOutcome outcome;
};

class FaultBook {
 public:
  // `inventory`: as it is now; a slice's fault goes when that slice is gone.
  GpuIncident event(const GpuEvent& event, const GpuInventory& inventory, Instant now);
  // All that a check found: what it does not find any more is over.
  void checked(std::uint32_t gpu, std::vector<GpuFault> faults);
  // After a restart of the daemon: what had happened by the inventory that was last told (known.h).
  void restore(const std::vector<GpuDevice>& told);
  // By the operator, or after a probe that found nothing: events are forgotten.
  void clear(std::uint32_t gpu);

  // Sets the faults of all GPUs; those of discovery itself stay. What can wait for the end of a job
  // is told with domain none while `busy(index)`.
  void fill(GpuInventory& inventory, const std::function<bool(std::uint32_t)>& busy) const;

 private:
  struct Happened {
    GpuFault fault;
    std::string slice;  // UUID; "" = of the GPU
  };
  struct Gpu {
    std::vector<Happened> happened;
    std::vector<GpuFault> found;
  };
  std::map<std::uint32_t, Gpu> gpus_;
};

}  // namespace gantry::gpu
