#include "noded/gpu/watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace gantry::gpu {
namespace {

constexpr std::size_t kMostQueued = 4096;  // a storm of Xids; those beyond repeat what is there

// The same but for when they began.
bool same_causes(const std::vector<GpuFault>& a, const std::vector<GpuFault>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](auto& x, auto& y) { return x.cause == y.cause && x.domain == y.domain; });
}

}  // namespace

GpuWatch::GpuWatch(const Nvml& nvml, const Discovery& found, runtime::Fd wake)
    : nvml_(nvml), found_(found), wake_(std::move(wake)), last_(found.devices.size()) {
  for (const nvml::Device device : found.devices)
    baselines_.push_back(device != nullptr ? HealthBaseline::of(nvml, device) : HealthBaseline{});
}

Result<std::unique_ptr<GpuWatch>> GpuWatch::start(const Nvml& nvml, const Discovery& found) {
  runtime::Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return runtime::fail_errno(ErrorCode::io_error, "eventfd");
  auto reader = EventReader::open(nvml, found);
  if (!reader) return tl::unexpected(reader.error());
  std::unique_ptr<GpuWatch> out(new GpuWatch(nvml, found, std::move(wake)));
  GpuWatch* self = out.get();
  out->thread_ = std::make_unique<EventThread>(
      std::move(*reader), [self](const GpuEvent& event) { self->push(event); },
      [self](const Failure& failure) {
        const std::scoped_lock lock(self->mutex_);
        self->deaf_ = to_string(failure);
      });
  return out;
}

void GpuWatch::push(const GpuEvent& event) {
  {
    const std::scoped_lock lock(mutex_);
    if (queue_.size() >= kMostQueued) return;
    queue_.push_back(event);
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);  // full: it is readable already
}

std::vector<GpuIncident> GpuWatch::take(const GpuInventory& inventory, Instant now) {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::deque<GpuEvent> events;
  {
    const std::scoped_lock lock(mutex_);
    events.swap(queue_);
  }
  std::vector<GpuIncident> out;
  for (const GpuEvent& event : events) out.push_back(book_.event(event, inventory, now));
  return out;
}

bool GpuWatch::check(Instant now) {
  bool changed = false;
  for (std::size_t i = 0; i < found_.devices.size(); ++i) {
    auto faults = gpu::check(nvml_, found_.devices[i], baselines_[i], now);
    changed = changed || !same_causes(faults, last_[i]);
    last_[i] = faults;
    book_.checked(static_cast<std::uint32_t>(i), std::move(faults));
  }
  return changed;
}

std::string GpuWatch::why_deaf() {
  const std::scoped_lock lock(mutex_);
  return deaf_;
}

}  // namespace gantry::gpu
