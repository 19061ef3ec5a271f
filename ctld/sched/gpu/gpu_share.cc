#include "ctld/sched/gpu/gpu_share.h"

#include <algorithm>

#include "common/assert.h"

namespace gantry::sched {

void GpuShares::mark(std::span<const GpuGrant> devices, PartitionId tenant, bool taken) {
  for (const GpuGrant& d : devices) {
    if (!is_part(d)) continue;
    if (parts_.size() <= d.gpu) parts_.resize(d.gpu + 1u);
    Part& part = parts_[d.gpu];
    GANTRY_ASSERT(part.taken == GpuThousandths{} || part.tenant == tenant,
                  "a GPU shared by two tenants");
    if (taken) {
      part.taken += d.thousandths;
      part.tenant = tenant;
      GANTRY_ASSERT(part.taken <= kOneGpu, "more of a GPU given than there is");
    } else {
      GANTRY_ASSERT(part.taken >= d.thousandths, "more of a GPU given back than taken");
      part.taken -= d.thousandths;
    }
  }
}

std::int32_t GpuShares::shared() const {
  return static_cast<std::int32_t>(
      std::count_if(parts_.begin(), parts_.end(),
                    [](const Part& part) { return part.taken > GpuThousandths{}; }));
}

std::optional<std::uint16_t> GpuShares::room_beside(std::span<const GpuView> devices,
                                                    PartitionId tenant, DevicePart asked) const {
  std::optional<std::uint16_t> best;
  for (const GpuView& gpu : devices) {
    if (!is_shared(gpu.index) || gpu.mig) continue;
    const Part& part = parts_[gpu.index];
    if (part.tenant != tenant || part.taken + thousandths_of_gpu(asked) > kOneGpu) continue;
    if (!best || part.taken > parts_[*best].taken) best = gpu.index;
  }
  return best;
}

}  // namespace gantry::sched
