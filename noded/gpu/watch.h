// The GPUs of a running daemon under watch: events as they come, checks when the daemon asks for
// them. Calls of the driver that can take long are not made here but by check(), which is the
// caller's to place.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "noded/gpu/fault_book.h"
#include "noded/runtime/files.h"

namespace gantry::gpu {

class GpuWatch {
 public:
  // Both outlive it. After discovery has found other devices, start another one.
  static Result<std::unique_ptr<GpuWatch>> start(const Nvml& nvml, const Discovery& found);

  // Readable when take() has something.
  [[nodiscard]] int descriptor() const { return wake_.get(); }
  // What has happened since the last call, in order.
  std::vector<GpuIncident> take(const GpuInventory& inventory, Instant now);
  // Looks at every GPU; true when it found other faults than the last time.
  bool check(Instant now);

  FaultBook& faults() { return book_; }
  // Why there are no more events; "" while there are.
  [[nodiscard]] std::string why_deaf();

 private:
  GpuWatch(const Nvml& nvml, const Discovery& found, runtime::Fd wake);
  void push(const GpuEvent& event);

  const Nvml& nvml_;
  const Discovery& found_;
  runtime::Fd wake_;
  std::vector<HealthBaseline> baselines_;
  std::vector<std::vector<GpuFault>> last_;
  FaultBook book_;
  std::mutex mutex_;  // of what the thread writes: queue_ and deaf_
  std::deque<GpuEvent> queue_;
  std::string deaf_;
  std::unique_ptr<EventThread> thread_;  // last: it ends first
};

}  // namespace gantry::gpu
