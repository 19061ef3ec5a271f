#include "noded/gpu/fault_book.h"

#include <algorithm>

namespace gantry::gpu {
namespace {

constexpr std::size_t kMostHappened = 64;  // of one GPU; storms of Xids repeat themselves

const GpuDevice* device_of(const GpuInventory& inventory, std::uint32_t index) {
  return index < inventory.gpus.size() ? &inventory.gpus[index] : nullptr;
}

const MigSlice* slice_in(const GpuDevice* gpu, std::uint32_t gpu_instance) {
  if (gpu == nullptr) return nullptr;
  for (const MigSlice& slice : gpu->slices)
    if (slice.gpu_instance == gpu_instance) return &slice;
  return nullptr;
}

bool has_slice(const GpuDevice& gpu, const std::string& uuid) {
  return std::any_of(gpu.slices.begin(), gpu.slices.end(),
                     [&](const MigSlice& slice) { return slice.uuid == uuid; });
}

}  // namespace

GpuIncident FaultBook::event(const GpuEvent& event, const GpuInventory& inventory, Instant now) {
  GpuIncident out;
  out.gpu = event.gpu;
  if (event.lost) {
    out.outcome = {
        XidAction::fail_gpu, {FaultDomain::gpu, "gpu-lost: fallen off the bus", 0, now}, true};
  } else if (event.xid.xid == 0) {
    return out;  // news without a number: the next check looks
  } else {
    out.outcome = judge(event.xid, now);
  }
  const GpuFault& fault = out.outcome.fault;
  if (fault.domain == FaultDomain::none) return out;
  Happened one{fault, ""};
  if (fault.domain == FaultDomain::slice) {
    const MigSlice* slice = slice_in(device_of(inventory, event.gpu), fault.gpu_instance);
    if (slice == nullptr) return out;  // it has gone since
    one.slice = slice->uuid;
  }
  auto& happened = gpus_[event.gpu].happened;
  const bool known = std::any_of(happened.begin(), happened.end(), [&](const Happened& h) {
    return h.fault.cause == fault.cause && h.slice == one.slice;
  });
  if (!known && happened.size() < kMostHappened) happened.push_back(std::move(one));
  return out;
}

void FaultBook::checked(std::uint32_t gpu, std::vector<GpuFault> faults) {
  auto& found = gpus_[gpu].found;
  for (GpuFault& fault : faults)
    for (const GpuFault& before : found)
      if (before.cause == fault.cause) fault.since = before.since;
  found = std::move(faults);
}

void FaultBook::restore(const std::vector<GpuDevice>& told) {
  for (const GpuDevice& gpu : told)
    for (const GpuFault& fault : gpu.faults) {
      if (!fault.cause.starts_with("gpu-xid-")) continue;  // others are found again
      const MigSlice* slice =
          fault.domain == FaultDomain::slice ? slice_in(&gpu, fault.gpu_instance) : nullptr;
      if (fault.domain == FaultDomain::slice && slice == nullptr) continue;
      gpus_[gpu.index].happened.push_back({fault, slice != nullptr ? slice->uuid : ""});
    }
}

void FaultBook::clear(std::uint32_t gpu) {
  gpus_[gpu].happened.clear();
}

void FaultBook::fill(GpuInventory& inventory,
                     const std::function<bool(std::uint32_t)>& busy) const {
  for (auto& [index, known] : gpus_) {
    if (index >= inventory.gpus.size()) continue;
    GpuDevice& gpu = inventory.gpus[index];
    const auto add = [&](GpuFault fault) {
      // "gpu-lost" may come from discovery, a check and an event: once is enough.
      if (std::none_of(gpu.faults.begin(), gpu.faults.end(),
                       [&](const GpuFault& f) { return f.cause == fault.cause; }))
        gpu.faults.push_back(std::move(fault));
    };
    for (const Happened& one : known.happened)
      if (one.slice.empty() || has_slice(gpu, one.slice)) add(one.fault);
    for (GpuFault fault : known.found) {
      if (can_wait(fault) && busy(index)) fault.domain = FaultDomain::none;
      add(std::move(fault));
    }
  }
}

}  // namespace gantry::gpu
