#include "ctld/sched/gpu_share.h"

#include <algorithm>

#include "common/assert.h"

namespace gantry::sched {

void GpuShares::mark(std::span<const GpuGrant> devices, PartitionId tenant, bool taken) {
  for (const GpuGrant& d : devices) {
    if (!is_part(d)) continue;
    if (parts_.size() <= d.gpu) parts_.resize(d.gpu + 1u);
    Part& part = parts_[d.gpu];
    GANTRY_ASSERT(part.thousandths == 0 || part.tenant == tenant, "a GPU shared by two tenants");
    if (taken) {
      part.thousandths += d.thousandths;
      part.tenant = tenant;
      GANTRY_ASSERT(part.thousandths <= 1000, "more of a GPU given than there is");
    } else {
      GANTRY_ASSERT(part.thousandths >= d.thousandths, "more of a GPU given back than taken");
      part.thousandths -= d.thousandths;
    }
  }
}

std::int32_t GpuShares::shared() const {
  return static_cast<std::int32_t>(std::count_if(
      parts_.begin(), parts_.end(), [](const Part& part) { return part.thousandths > 0; }));
}

std::optional<std::uint16_t> GpuShares::room_beside(std::span<const GpuView> devices,
                                                    PartitionId tenant,
                                                    std::uint32_t thousandths) const {
  std::optional<std::uint16_t> best;
  for (const GpuView& gpu : devices) {
    if (!is_shared(gpu.index) || gpu.mig) continue;
    const Part& part = parts_[gpu.index];
    if (part.tenant != tenant || part.thousandths + thousandths > 1000) continue;
    if (!best || part.thousandths > parts_[*best].thousandths) best = gpu.index;
  }
  return best;
}

}  // namespace gantry::sched
