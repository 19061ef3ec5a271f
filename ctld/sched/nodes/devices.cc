#include "ctld/sched/nodes/devices.h"

#include "common/assert.h"
#include "ctld/sched/gpu/gpu_choice.h"

namespace gantry::sched {

std::vector<std::uint16_t> choose_cpus(const GridNode& node, std::int32_t count) {
  const std::size_t all = node.cpus.size();
  std::size_t from = 0;
  if (node.sockets > 1 && count < static_cast<std::int32_t>(all)) {
    std::int32_t best = 0;
    for (std::uint32_t s = 0; s < node.sockets; ++s) {
      std::int32_t free = 0;
      for (std::size_t i = all * s / node.sockets; i < all * (s + 1) / node.sockets; ++i)
        free += node.free_cpus.test(i) ? 1 : 0;
      if (free < count || (best > 0 && free >= best)) continue;
      best = free;
      from = all * s / node.sockets;
    }
  }
  std::vector<std::uint16_t> chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  for (std::size_t w = from / 64; w < node.free_cpus.words(); ++w) {
    std::uint64_t word = node.free_cpus.word(w);
    if (w == from / 64) word &= ~std::uint64_t{0} << (from % 64);
    if (any_in_word(word, w, [&](std::uint32_t i) {
          if (static_cast<std::int32_t>(chosen.size()) == count) return true;
          chosen.push_back(node.cpus[i]);
          return false;
        }))
      break;
  }
  GANTRY_ASSERT(static_cast<std::int32_t>(chosen.size()) == count, "fewer CPUs free than counted");
  return chosen;
}

std::vector<GpuGrant> choose_devices(const GridNode& node, std::int32_t count) {
  std::vector<GpuGrant> chosen;
  for (const std::uint16_t gpu :
       choose_gpus(node.devices, node.gpu_taken, static_cast<std::uint32_t>(count)))
    chosen.push_back({gpu, std::nullopt, 0});
  return chosen;
}

bool has_free_devices(const Grid& grid, std::uint32_t n, const Demand& demand, PartitionId tenant) {
  if (demand.gpus == 0 && demand.gpu_share == DevicePart{}) return true;
  const GridNode& node = grid.node(n);
  const std::int32_t untouched = grid.free(n).gpus - node.shares.shared();
  if (demand.gpu_share == DevicePart{}) return untouched >= static_cast<std::int32_t>(demand.gpus);
  return node.gpu_sharing &&
         (untouched > 0 || node.shares.room_beside(node.devices, tenant, demand.gpu_share));
}

GpuGrant choose_part(const GridNode& node, DevicePart part, PartitionId tenant) {
  auto gpu = node.shares.room_beside(node.devices, tenant, part);
  if (!gpu) gpu = choose_gpus(node.devices, node.gpu_taken, 1).front();
  return {*gpu, std::nullopt, 0, thousandths_of_gpu(part).narrow<std::uint16_t>()};
}

std::vector<GresGrant> choose_gres(const GridNode& node, std::span<const GresCount> wanted) {
  std::vector<GresGrant> chosen;
  for (const GresCount& want : wanted) {
    GresGrant& grant = chosen.emplace_back(GresGrant{want.name, {}});
    const auto marks = node.gres_taken.find(want.name);
    for (std::uint16_t i = 0; grant.devices.size() < want.count; ++i) {
      GANTRY_ASSERT(i < kMostGresCount, "fewer resources free than counted");
      if (marks == node.gres_taken.end() || i >= marks->second.size() || !marks->second[i])
        grant.devices.push_back(i);
    }
  }
  return chosen;
}

}  // namespace gantry::sched
