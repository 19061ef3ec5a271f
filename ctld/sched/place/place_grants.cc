// The CPUs and devices of a place, and why a job has no place.
#include <algorithm>
#include <unordered_map>

#include "ctld/sched/nodes/devices.h"
#include "ctld/sched/nodes/topology.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {
namespace {

std::vector<GpuGrant> choose_devices(const Grid& grid, const JobClass& cls, std::uint32_t node,
                                     const Room& need, Instant end) {
  if (need.slices > SliceThousandths{})
    return grid.slices().on(node).choose(ask_of(cls, end), slices_for(cls));
  if (cls.demand.gpu_share == DevicePart{}) return choose_devices(grid.node(node), need.gpus);
  return {choose_part(grid.node(node), cls.demand.gpu_share, cls.key.partition)};
}

}  // namespace

std::vector<NodeGrant> make_grants(const Grid& grid, const JobClass& cls,
                                   const std::vector<Share>& shares, Instant end) {
  std::vector<NodeGrant> grants;
  grants.reserve(shares.size());
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const auto& [node, tasks] = shares[rank];
    Room need = need_for(cls.demand, grid.room(node), tasks);
    // The place has room for this many tasks on each node; the last nodes may need one less.
    const JobShape& shape = cls.key.shape;
    if (shape.gpus_in_all > 0 && shape.gpus_per_task == 0 && !cls.demand.all_gpus) {
      need.gpus = static_cast<std::int32_t>(shape.gpus_on(rank, shares.size()));
      if (shape.memory_per_gpu > 0) need.memory = shape.memory_per_gpu * need.gpus;
    }
    grants.push_back({NodeId{node}, choose_cpus(grid.node(node), need.cpus), need.memory,
                      need.scratch, static_cast<std::uint32_t>(need.gpus), tasks,
                      choose_devices(grid, cls, node, need, end),
                      choose_gres(grid.node(node), cls.key.shape.gres), std::nullopt, cls.demand.io,
                      cls.demand.net});
  }
  return grants;
}

std::optional<Verdict> explain_place(const Grid& grid, const Bits& allowed, const JobClass& cls,
                                     const Neighbours* neighbours) {
  const JobShape& shape = cls.key.shape;
  std::vector<Candidate> all;
  for (std::size_t w = 0; w < allowed.words(); ++w)
    any_in_word(allowed.word(w), w, [&](std::uint32_t n) {
      if (!grid.available(n) || !has_devices(grid, cls, n, kMigNever)) return false;
      if (const auto fits = tasks_fitting(cls.demand, grid.room(n), grid.free(n)); fits > 0)
        all.push_back({n, fits, std::binary_search(cls.required.begin(), cls.required.end(), n)});
      return false;
    });
  const auto required = static_cast<std::uint32_t>(cls.required.size());
  if (!choose_nodes(cls.demand, all, required)) return std::nullopt;
  if (neighbours != nullptr) {
    std::erase_if(all, [&](const Candidate& c) { return !neighbours->allows(c.node); });
    neighbours->trim(all);
    if (!choose_nodes(cls.demand, all, required)) {
      if (shape.anti_affinity.empty())
        return Verdict{Reason::resources, 0, cls.demand.min_nodes, ""};
      return Verdict{Reason::anti_affinity, 0, 0,
                     shape.anti_affinity + " by " + shape.anti_affinity_level};
    }
  }
  if (choose_places(grid, cls, all)) return std::nullopt;
  std::unordered_map<std::uint32_t, std::uint32_t> domains;
  std::uint32_t most = 0;
  if (const auto level = grid.levels().find(shape.topology_level))
    for (const Candidate& c : all)
      if (const std::uint32_t domain = grid.levels().domain(*level, c.node); domain != kNoIndex)
        most = std::max(most, ++domains[domain]);
  return Verdict{Reason::topology, most, cls.demand.min_nodes, shape.topology_level};
}

std::uint32_t count_fitting(const Grid& grid, const Bits& allowed, const JobClass& cls) {
  const Demand& d = cls.demand;
  std::uint32_t count = 0;
  const std::int64_t cores = d.cores_for(1);
  if (cores > grid.sets().most_cpus()) return 0;
  const std::uint32_t least = (d.tasks + d.max_nodes - 1) / d.max_nodes;
  for (std::size_t w = 0; w < grid.sets().words(); ++w)
    any_in_word(grid.sets().at_least(static_cast<std::int32_t>(cores), w) & allowed.word(w), w,
                [&](std::uint32_t n) {
                  count += tasks_fitting(d, grid.room(n), grid.free(n)) >= least ? 1 : 0;
                  return false;
                });
  return count;
}

}  // namespace gantry::sched
