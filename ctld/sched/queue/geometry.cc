#include "ctld/sched/queue/geometry.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "common/assert.h"
#include "ctld/sched/gpu/mig_node.h"

namespace gantry::sched {

Room room_of(const NodeChanged& node) {
  SliceThousandths slices;
  for (const GpuView& gpu : node.devices)
    for (const MigGeometry& g : node.geometries)
      if (gpu.mig && g.model == gpu.model)
        slices += thousandths_of(ComputeSlices{std::min(g.compute_slices, kMostMigSlices)});
  return {node.memory,
          node.scratch,
          static_cast<std::int32_t>(node.cpus.size()),
          static_cast<std::int32_t>(node.gpus),
          slices.narrow<std::int32_t>(),
          {},
          node.gres};
}

Demand demand_of(const JobShape& shape, const PartitionChanged& partition) {
  Demand d;
  d.min_nodes =
      std::max({shape.min_nodes, 1u, static_cast<std::uint32_t>(shape.required_nodes.size())});
  d.max_nodes = std::max(shape.max_nodes, d.min_nodes);
  d.tasks = std::max(shape.tasks, d.min_nodes);
  d.most_per_node = std::clamp(shape.tasks_per_node.value_or(d.tasks), 1u, d.tasks);
  d.cpus_per_task = std::max(shape.cpus_per_task, 1u);
  d.least_cpus = shape.min_cpus_per_node;
  d.overcommit = shape.overcommit;
  if (shape.memory_per_node) {
    d.memory_rule = *shape.memory_per_node == 0 ? MemoryRule::whole_node : MemoryRule::per_node;
    d.memory = *shape.memory_per_node;
  } else if (shape.memory_per_cpu) {
    d.memory_rule = MemoryRule::per_cpu;
    d.memory = *shape.memory_per_cpu;
  } else if (partition.default_memory_per_cpu > 0) {
    d.memory_rule = MemoryRule::per_cpu;
    d.memory = partition.default_memory_per_cpu;
  }
  d.scratch = shape.scratch_per_node;
  d.io = shape.io_per_node;
  d.net = shape.net_per_node;
  if (shape.gpus_per_task > 0 && shape.gpu_slice.empty()) {
    d.gpus_per_task = shape.gpus_per_task;
    d.gpus = shape.gpus_per_task;
    if (shape.memory_per_gpu > 0) d.memory = shape.memory_per_gpu * shape.gpus_per_task;
  } else if (shape.gpu_slice.empty()) {
    d.gpus = shape.gpus_per_node;
    d.gpu_share = DevicePart{shape.gpu_share};
  } else {
    const ComputeSlices each{compute_slices_of(shape.gpu_slice)};
    d.slices = thousandths_of(each) * Times{shape.gpus_per_node} +
               part_of(each, DevicePart{shape.gpu_share});
  }
  if (shape.gpus_in_all > 0 && shape.gpu_slice.empty()) {
    d.gpus_in_all = shape.gpus_in_all;
    d.memory_per_gpu = shape.memory_per_gpu;
  }
  for (const GresCount& g : shape.gres) {
    const auto& names = partition.gres_names;
    const auto at = std::lower_bound(names.begin(), names.end(), g.name);
    if (at != names.end() && *at == g.name)
      d.gres[static_cast<std::size_t>(at - names.begin())] = static_cast<std::int16_t>(g.count);
    else
      d.gres[0] = std::numeric_limits<std::int16_t>::max();
  }
  d.exclusive = shape.exclusive || partition.exclusive_nodes;
  d.all_gpus = d.exclusive && shape.all_gpus && shape.gpu_slice.empty() && shape.gpu_share == 0;
  d.node_layout = shape.node_layout;
  d.particular = shape.topology != TopologyWish::none || !shape.anti_affinity.empty() ||
                 shape.node_layout != NodeLayout::any || shape.sharing != NodeSharing::any ||
                 !shape.gpu_slice.empty() || shape.gpu_share > 0;
  return d;
}

namespace {

// Checks only resources that are asked for: a node that shrank while its jobs run has negative
// amounts free.
bool enough_devices(const Demand& d, const Room& free) {
  const GpuThousandths asked = thousandths_of(Gpus{d.gpus}) + thousandths_of_gpu(d.gpu_share);
  if (asked > GpuThousandths{} && free.gpu_thousandths() < asked) return false;
  for (std::size_t i = 0; i < d.gres.size(); ++i)
    if (d.gres[i] > 0 && free.gres[i] < d.gres[i]) return false;
  return true;
}

// How many tasks find their GPUs in `free`. If parts of GPUs are taken, the sum does not tell how
// many devices are whole; then this checks for one task only.
std::int64_t tasks_with_gpus(const Demand& d, const Room& free) {
  if (free.gpu_parts != GpuThousandths::in<std::int32_t>{}) return 1;
  return free.gpus / static_cast<std::int64_t>(d.gpus_per_task);
}

bool no_less(const GresAmounts& more, const GresAmounts& less) {
  for (std::size_t i = 0; i < less.size(); ++i)
    if (more[i] < less[i]) return false;
  return true;
}

}  // namespace

std::uint32_t tasks_fitting(const Demand& d, const Room& size, const Room& free) {
  if (free.cpus < d.cores_for(1) || free.scratch < d.scratch ||
      free.gpus < static_cast<std::int64_t>(d.gpus) || free.slices < d.slices ||
      !enough_devices(d, free))
    return 0;
  if (d.exclusive && free.cpus != size.cpus) return 0;
  std::int64_t fits = d.most_per_node;
  const auto limit_cores = [&](std::int64_t cores) {
    if (cores < d.cores_for(1)) fits = 0;
    if (!d.overcommit) fits = std::min(fits, cores / d.cpus_per_task);
  };
  limit_cores(free.cpus);
  if (d.gpus_per_task > 0) fits = std::min(fits, tasks_with_gpus(d, free));
  switch (d.memory_rule) {
    case MemoryRule::per_node:
      if (free.memory < d.memory) return 0;
      if (d.by_task()) fits = std::min(fits, free.memory / d.memory);  // GPUs of one task
      break;
    case MemoryRule::whole_node:
      if (free.memory < size.memory) return 0;
      break;
    case MemoryRule::per_cpu:
      if (d.memory > 0) limit_cores(free.memory / d.memory);
      break;
    case MemoryRule::even_part:
      if (d.exclusive) break;  // the node is empty
      if (const std::int64_t part = size.memory / size.cpus; part > 0)
        limit_cores(free.memory / part);
      break;
  }
  return fits > 0 ? static_cast<std::uint32_t>(fits) : 0;
}

bool holds(const Demand& d, const Room& size, const Room& free, std::uint32_t tasks) {
  if (tasks > d.most_per_node || (d.exclusive && free.cpus != size.cpus)) return false;
  if (free.cpus < d.cores_for(tasks)) return false;
  if (d.gpus_per_task > 0 && tasks > tasks_with_gpus(d, free)) return false;
  const Room need = need_for(d, size, tasks);
  return free.cpus >= need.cpus && free.memory >= need.memory && free.scratch >= need.scratch &&
         free.gpus >= need.gpus && free.slices >= need.slices && enough_devices(d, free);
}

bool asks_no_less(const Demand& more, const Demand& less) {
  return !less.particular && more.min_nodes >= less.min_nodes && more.max_nodes <= less.max_nodes &&
         more.tasks >= less.tasks && more.cpus_per_task >= less.cpus_per_task &&
         more.least_cpus >= less.least_cpus && more.overcommit <= less.overcommit &&
         (less.most_per_node >= more.most_per_node || less.most_per_node >= less.tasks) &&
         more.memory_rule == less.memory_rule && more.memory >= less.memory &&
         more.scratch >= less.scratch && more.gpus >= less.gpus &&
         more.gpus_per_task == less.gpus_per_task && more.memory_per_gpu == less.memory_per_gpu &&
         more.slices >= less.slices && more.gpu_share >= less.gpu_share &&
         no_less(more.gres, less.gres) && more.exclusive >= less.exclusive &&
         more.all_gpus >= less.all_gpus;
}

Room need_for(const Demand& d, const Room& size, std::uint32_t tasks) {
  const std::int64_t asked = d.cores_for(tasks);
  Room need{0,
            d.scratch,
            static_cast<std::int32_t>(d.exclusive ? size.cpus : asked),
            d.all_gpus ? std::max(size.gpus, static_cast<std::int32_t>(d.gpus))
                       : static_cast<std::int32_t>(d.gpus),
            d.slices.narrow<std::int32_t>(),
            thousandths_of_gpu(d.gpu_share).narrow<std::int32_t>(),
            d.gres};
  if (d.gpus_per_task > 0 && !d.all_gpus)
    need.gpus = static_cast<std::int32_t>(d.gpus_per_task * tasks);
  switch (d.memory_rule) {
    case MemoryRule::per_node: need.memory = d.by_task() ? d.memory * tasks : d.memory; break;
    case MemoryRule::per_cpu: need.memory = d.memory * asked; break;
    case MemoryRule::whole_node: need.memory = size.memory; break;
    case MemoryRule::even_part:
      // The amount for one core is computed first, so that the parts of several jobs never exceed
      // the node.
      need.memory = size.cpus > 0 ? size.memory / size.cpus * need.cpus : 0;
      break;
  }
  return need;
}

namespace {

// Deals the tasks to the chosen nodes in turn and skips full nodes.
std::vector<Share> deal(std::uint32_t tasks, std::vector<Candidate> chosen) {
  std::sort(chosen.begin(), chosen.end(),
            [](const Candidate& a, const Candidate& b) { return a.node < b.node; });
  std::vector<Share> shares;
  shares.reserve(chosen.size());
  for (const Candidate& c : chosen) shares.push_back({c.node, 0});
  while (tasks > 0) {
    bool dealt = false;
    for (std::size_t i = 0; i < chosen.size() && tasks > 0; ++i) {
      if (shares[i].tasks == chosen[i].fits) continue;
      ++shares[i].tasks;
      --tasks;
      dealt = true;
    }
    GANTRY_ASSERT(dealt, "chosen nodes cannot hold the tasks");
  }
  return shares;
}

}  // namespace

std::uint64_t sum_fits(std::span<const Candidate> chosen) {
  return std::accumulate(chosen.begin(), chosen.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Candidate& c) { return sum + c.fits; });
}

namespace {

// The fewest adjacent nodes that suffice; the first of several such groups.
std::optional<std::vector<Share>> choose_row(const Demand& d, std::vector<Candidate> all,
                                             std::uint32_t required) {
  std::sort(all.begin(), all.end(),
            [](const Candidate& a, const Candidate& b) { return a.node < b.node; });
  const auto row_at = [&](std::size_t first, std::size_t count) -> bool {
    std::uint32_t named = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      if (i > first && all[i].node != all[i - 1].node + 1) return false;
      named += all[i].required ? 1 : 0;
    }
    return named == required && sum_fits({all.data() + first, count}) >= d.tasks;
  };
  for (std::size_t count = d.min_nodes; count <= std::min<std::size_t>(d.max_nodes, all.size());
       ++count)
    for (std::size_t first = 0; first + count <= all.size(); ++first)
      if (row_at(first, count)) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        return deal(d.tasks, {begin, begin + static_cast<std::ptrdiff_t>(count)});
      }
  return std::nullopt;
}

// Takes as many nodes as the job may have and has tasks for; the required ones first, then by
// preference. The emptiest nodes take part if the others cannot hold all tasks.
std::optional<std::vector<Share>> choose_widely(const Demand& d, std::vector<Candidate> must,
                                                std::vector<Candidate> others) {
  const std::size_t most = std::min(d.max_nodes, d.tasks);
  const auto take = [&]() -> std::optional<std::vector<Share>> {
    std::vector<Candidate> chosen = must;
    for (std::size_t i = 0; i < others.size() && chosen.size() < most; ++i)
      chosen.push_back(others[i]);
    if (chosen.size() < d.min_nodes || sum_fits(chosen) < d.tasks) return std::nullopt;
    return deal(d.tasks, std::move(chosen));
  };
  if (auto shares = take()) return shares;
  std::stable_sort(others.begin(), others.end(),
                   [](const Candidate& a, const Candidate& b) { return a.fits > b.fits; });
  return take();
}

}  // namespace

std::optional<std::vector<Share>> choose_nodes(const Demand& d,
                                               std::span<const Candidate> candidates,
                                               std::uint32_t required) {
  std::vector<Candidate> must, others;
  for (const Candidate& c : candidates) (c.required ? must : others).push_back(c);
  if (must.size() < required || candidates.size() < d.min_nodes) return std::nullopt;
  if (d.node_layout == NodeLayout::next_to_each_other)
    return choose_row(d, {candidates.begin(), candidates.end()}, required);
  if (d.node_layout == NodeLayout::as_many_as_may_be)
    return choose_widely(d, std::move(must), std::move(others));

  // Takes the fewest nodes that suffice: those on which most tasks fit first; between equals
  // preference decides.
  std::vector<std::uint32_t> widest(others.size());
  std::iota(widest.begin(), widest.end(), 0);
  const std::size_t most = std::min<std::size_t>(widest.size(), d.max_nodes - must.size());
  std::partial_sort(widest.begin(), widest.begin() + static_cast<std::ptrdiff_t>(most),
                    widest.end(), [&](std::uint32_t a, std::uint32_t b) {
                      return std::pair{others[b].fits, a} < std::pair{others[a].fits, b};
                    });
  std::vector<Candidate> chosen = must;
  std::uint64_t room = sum_fits(must);
  for (std::size_t i = 0; i < most && (chosen.size() < d.min_nodes || room < d.tasks); ++i) {
    chosen.push_back(others[widest[i]]);
    room += chosen.back().fits;
  }
  if (chosen.size() < d.min_nodes || room < d.tasks) return std::nullopt;

  // Takes as many nodes by preference instead, if enough of them can take an even share.
  const std::size_t count = chosen.size();
  const std::uint64_t share = (d.tasks + count - 1) / count;
  std::vector<Candidate> preferred = must;
  for (const Candidate& c : others) {
    if (preferred.size() == count) break;
    if (c.fits >= share) preferred.push_back(c);
  }
  if (preferred.size() == count && sum_fits(preferred) >= d.tasks) chosen = std::move(preferred);
  return deal(d.tasks, std::move(chosen));
}

std::size_t hash_of(const ClassKey& key) {
  std::uint64_t h = 0x9E3779B97F4A7C15ull;
  const auto mix = [&h](std::uint64_t v) {
    h ^= v;
    h *= 0xFF51AFD7ED558CCDull;
    h ^= h >> 32;
  };
  const auto text = [&](const std::string& s) {
    for (const char c : s) mix(static_cast<unsigned char>(c));
    mix(s.size());
  };
  const JobShape& s = key.shape;
  mix(key.partition.value());
  mix(key.time_limit ? static_cast<std::uint64_t>(key.time_limit->us) + 1 : 0);
  mix(key.time_min ? static_cast<std::uint64_t>(key.time_min->us) + 1 : 0);
  mix((std::uint64_t{s.min_nodes} << 32) | s.max_nodes);
  mix((std::uint64_t{s.tasks} << 32) | s.cpus_per_task);
  mix((std::uint64_t{s.min_cpus_per_node} << 8) | (static_cast<std::uint64_t>(s.node_layout) << 2) |
      (s.all_gpus ? 2 : 0) | (s.overcommit ? 1 : 0));
  mix(s.tasks_per_node ? std::uint64_t{*s.tasks_per_node} + 1 : 0);
  mix(s.memory_per_node ? static_cast<std::uint64_t>(*s.memory_per_node) + 1 : 0);
  mix(s.memory_per_cpu ? static_cast<std::uint64_t>(*s.memory_per_cpu) + 1 : 0);
  mix(static_cast<std::uint64_t>(s.scratch_per_node));
  if (s.io_per_node != 0) mix(static_cast<std::uint64_t>(s.io_per_node) + 1);
  if (s.net_per_node != 0) mix(static_cast<std::uint64_t>(s.net_per_node) + 2);
  mix((std::uint64_t{s.gpus_per_node} << 1) | (s.exclusive ? 1 : 0));
  mix((std::uint64_t{s.gpus_in_all} << 32) | s.gpus_per_task);
  mix(static_cast<std::uint64_t>(s.memory_per_gpu));
  text(s.constraint);
  if (s.sandbox) mix(static_cast<std::uint64_t>(*s.sandbox));
  if (s.abilities != 0) mix((std::uint64_t{s.abilities} << 8) | 1);
  for (const std::string& n : s.required_nodes) text(n);
  mix(s.required_nodes.size());
  for (const std::string& n : s.excluded_nodes) text(n);
  mix(key.priority_class);
  text(key.reservation);
  if (key.het) mix(key.het->member(key.het->offset).value());
  mix((static_cast<std::uint64_t>(s.topology) << 8) | static_cast<std::uint64_t>(s.sharing));
  text(s.topology_level);
  for (const std::string& t : s.tolerations) text(t);
  text(s.anti_affinity);
  for (const std::string& m : s.gpu_models) text(m);
  text(s.gpu_slice);
  mix(s.gpu_share);
  for (const GresCount& g : s.gres) {
    text(g.name);
    mix(g.count);
  }
  return static_cast<std::size_t>(h);
}

}  // namespace gantry::sched
