// Parts of the GPUs of one node that jobs have, in thousandths of a GPU. A GPU of which somebody
// has a part belongs to that tenant until the last part is given back: no other tenant gets a part
// of it, and nobody all of it.
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
  // Of parts that no job has any more, and grants that are whole or slices: nothing happens. Two
  // tenants on one GPU, more than 1000 thousandths, or more given back than taken: our bug.
  void mark(std::span<const GpuGrant> devices, PartitionId tenant, bool taken);
  void clear() { parts_.clear(); }

  [[nodiscard]] std::int32_t shared() const;  // GPUs of which somebody has a part
  [[nodiscard]] bool is_shared(std::uint16_t gpu) const {
    return gpu < parts_.size() && parts_[gpu].thousandths > 0;
  }
  // f(thousandths, tenant) for each of those.
  template <class F>
  void each(F&& f) const {
    for (const Part& part : parts_)
      if (part.thousandths > 0) f(part.thousandths, part.tenant);
  }
  // The fullest GPU that the tenant shares already and that has so much left, of equals the first.
  [[nodiscard]] std::optional<std::uint16_t> room_beside(std::span<const GpuView> devices,
                                                         PartitionId tenant,
                                                         std::uint32_t thousandths) const;

 private:
  struct Part {
    std::uint32_t thousandths = 0;
    PartitionId tenant{};
  };
  std::vector<Part> parts_;  // by index, grows as needed
};

// What `part` thousandths of a slice weigh that weighs `slice` thousandths of a GPU: rounded down,
// as slices are, at least 1.
constexpr std::uint16_t weight_of_part(std::uint32_t slice, std::uint32_t part) {
  return static_cast<std::uint16_t>(std::max(1u, slice * part / 1000));
}

// What a job of this shape has of a node whose slices weigh `slice` each.
inline std::int64_t slices_weight(const JobShape& shape, std::uint32_t slice) {
  if (shape.gpu_share > 0) return weight_of_part(slice, shape.gpu_share);
  return std::int64_t{shape.gpus_per_node} * slice;
}

// A part of a GPU, not all of it and no slice.
inline bool is_part(const GpuGrant& grant) {
  return !grant.profile && !grant.whole();
}

}  // namespace gantry::sched
