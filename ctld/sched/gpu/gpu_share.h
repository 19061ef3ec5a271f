// Parts of the GPUs of one node that jobs have, in thousandths of a GPU. A GPU of which a job has a
// part belongs to that job's tenant until the last part is released: no other tenant gets a part of
// it, and no job gets all of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/change.h"

namespace gantry::sched {

class GpuShares {
 public:
  // Takes the parts, or releases them; whole GPUs and slices are ignored. Asserts that no GPU has
  // two tenants or more than 1000 thousandths taken, and that only what was taken is released.
  void mark(std::span<const GpuGrant> devices, PartitionId tenant, bool taken);
  void clear() { parts_.clear(); }

  [[nodiscard]] std::int32_t shared() const;  // GPUs of which at least one job has a part
  [[nodiscard]] bool is_shared(std::uint16_t gpu) const {
    return gpu < parts_.size() && parts_[gpu].taken > GpuThousandths{};
  }
  // Calls f(what is taken, tenant) for each such GPU.
  template <class F>
  void each(F&& f) const {
    for (const Part& part : parts_)
      if (part.taken > GpuThousandths{}) f(part.taken, part.tenant);
  }
  // The fullest GPU that the tenant shares already and on which the part fits; of equal ones the
  // first.
  [[nodiscard]] std::optional<std::uint16_t> room_beside(std::span<const GpuView> devices,
                                                         PartitionId tenant,
                                                         DevicePart asked) const;

 private:
  struct Part {
    GpuThousandths taken{};
    PartitionId tenant{};
  };
  std::vector<Part> parts_;  // by index, grows as needed
};

// The weight of a part of a slice that weighs `slice`: rounded down, as for slices, but at least 1.
constexpr GpuThousandths weight_of_part(GpuThousandths slice, DevicePart part) {
  return std::max(GpuThousandths{1}, part_of(slice, part));
}

// The weight of what a job of this shape uses of a node whose slices weigh `slice` each.
inline GpuThousandths slices_weight(const JobShape& shape, GpuThousandths slice) {
  if (shape.gpu_share > 0) return weight_of_part(slice, DevicePart{shape.gpu_share});
  return slice * Times{shape.gpus_per_node};
}

// True for a part of a GPU, which is neither a whole GPU nor a slice.
inline bool is_part(const GpuGrant& grant) {
  return !grant.profile && !grant.whole();
}

}  // namespace gantry::sched
