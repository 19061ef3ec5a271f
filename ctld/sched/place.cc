#include "ctld/sched/place.h"

#include <algorithm>
#include <unordered_map>

#include "ctld/sched/topology.h"

namespace gantry::sched {
namespace {

MigAsk ask_of(const JobClass& cls, Instant end) {
  const JobShape& shape = cls.key.shape;
  return {shape.gpu_slice, cls.key.time_limit ? end : kMigNever, cls.index, cls.key.partition,
          shape.gpu_share};
}

// Slices, or one to have a part of.
std::uint32_t slices_for(const JobClass& cls) {
  return cls.key.shape.gpu_share > 0 ? 1 : cls.key.shape.gpus_per_node;
}

std::vector<GpuGrant> choose_devices(const Grid& grid, const JobClass& cls, std::uint32_t node,
                                     const Room& need, Instant end) {
  if (need.slices > 0) return grid.node(node).slices.choose(ask_of(cls, end), slices_for(cls));
  if (cls.demand.gpu_share == 0) return grid.choose_devices(node, need.gpus);
  return {grid.choose_part(node, cls.demand.gpu_share, cls.key.partition)};
}

// A search of one class among the nodes that have some number of cores free.
class NodeSearch {
 public:
  NodeSearch(const Grid& grid, const Timeline& timeline, const Bits& allowed, const JobClass& cls,
             Bits* hopeful, const Neighbours* neighbours)
      : grid_(grid),
        timeline_(timeline),
        allowed_(allowed),
        cls_(cls),
        d_(cls.demand),
        until_(Timeline::end_of(timeline.now(), cls.key.time_limit)),
        hopeful_(hopeful),
        neighbours_(neighbours) {}

  [[nodiscard]] bool available(std::uint32_t n) const {
    return grid_.available(n) && has_devices(grid_, cls_, n, until_) &&
           (neighbours_ == nullptr || neighbours_->allows(n));
  }

  // Of an available node:
  [[nodiscard]] std::uint32_t fits(std::uint32_t n) const {
    if (!has_devices(grid_, cls_, n, until_)) return 0;
    return timeline_.fits(n, d_, timeline_.now(), until_, grid_.free(n));
  }

  [[nodiscard]] bool holds_all(std::uint32_t n) const {
    if (!has_devices(grid_, cls_, n, until_)) return false;
    return timeline_.holds(n, d_, timeline_.now(), until_, grid_.free(n), d_.tasks);
  }

  // Of a job on one node: the node whose GPU suits its slices best; before all one where its tenant
  // shares a slice, if it asks for a part, and what is kept for others until later.
  [[nodiscard]] std::optional<std::uint32_t> by_slices() const {
    Bits tried;
    tried.resize(grid_.size());
    const auto take = [&](std::uint32_t n) {
      if (!allowed_.test(n) || tried.test(n)) return false;
      tried.set(n);
      if (neighbours_ != nullptr && !neighbours_->allows(n)) return false;
      if (grid_.available(n) && holds_all(n)) return true;
      if (hopeful_ != nullptr) hopeful_->clear(n);
      return false;
    };
    std::optional<std::uint32_t> found;
    const auto find = [&](std::uint32_t n) {
      if (take(n)) found = n;
      return found.has_value();
    };
    const MigAsk ask = ask_of(cls_, until_);
    if (ask.part > 0 && grid_.any_with_slice_parts([&](std::uint32_t n) {
          return grid_.node(n).slices.room_beside(ask) && find(n);
        }))
      return found;
    for (const std::uint32_t n : grid_.held_nodes())
      if (find(n)) return found;
    (void)grid_.fleet().any(cls_.key.shape.gpu_slice, find);
    return found;
  }

  // GPUs that stay free on the node beside the job; none where a part goes to a GPU that its tenant
  // shares already.
  [[nodiscard]] std::int32_t gpus_left(std::uint32_t n) const {
    const GridNode& node = grid_.node(n);
    if (d_.gpu_share > 0 && node.shares.room_beside(node.devices, cls_.key.partition, d_.gpu_share))
      return 0;
    return std::max(0, grid_.free(n).gpus - static_cast<std::int32_t>(d_.gpus));
  }
  // Nodes of one family come one after the other: reserved, in use, idle; those of pools that are
  // spread over are each its own.
  [[nodiscard]] std::uint32_t family(std::uint32_t n) const {
    const auto bit = [n](std::uint64_t word) { return (word >> (n % 64)) & 1; };
    if (bit(grid_.spread_word(n / 64)) != 0) return 4 + n;
    return (bit(timeline_.reserved_word(n / 64)) != 0 ? 2 : 0) + (grid_.idle(n) ? 1 : 0);
  }

  // visit(node, fits) for nodes with at least `cpus` cores free and `least` tasks fitting, in order
  // of preference, until it returns true.
  template <class Visit>
  void by_preference(std::int64_t cpus, std::uint32_t least, Visit&& visit) const {
    // One node for all tasks is the usual wish, and cheaper to check than to count.
    if (least == d_.tasks)
      in_order(
          cpus,
          [this](std::uint32_t n) {
            if (neighbours_ != nullptr && !neighbours_->allows(n)) return 0u;
            if (holds_all(n)) return d_.tasks;
            if (hopeful_ != nullptr) hopeful_->clear(n);
            return 0u;
          },
          visit);
    else
      in_order(
          cpus,
          [this, least](std::uint32_t n) {
            if (neighbours_ != nullptr && !neighbours_->allows(n)) return 0u;
            const std::uint32_t f = fits(n);
            return f >= least ? f : 0;
          },
          visit);
  }

 private:
  static constexpr std::uint32_t kFew = 64;  // up to here looking at all beats going level by level

  // `fit(node)` says how many tasks would go there, 0 = not enough.
  template <class Fit, class Visit>
  void in_order(std::int64_t cpus, Fit&& fit, Visit& visit) const {
    if (cpus > grid_.most_cpus()) return;
    const auto low = static_cast<std::int32_t>(cpus);
    if (packed(low, fit, visit) || !grid_.any_spread()) return;
    sorted(
        low, fit, visit, [this](std::size_t w) { return grid_.spread_word(w); }, true);
  }

  template <class Fit, class Visit>
  bool packed(std::int32_t low, Fit& fit, Visit& visit) const {
    if (timeline_.any_reserved() && sorted(low, fit, visit, [this](std::size_t w) {
          return timeline_.reserved_word(w) & ~grid_.spread_word(w);
        }))
      return true;
    const std::uint32_t count = count_others(low);
    if (count == 0) return false;
    if (count <= kFew) return sorted(low, fit, visit, [this](std::size_t w) { return others(w); });
    if (!d_.exclusive && level_by_level(low, fit, visit, false)) return true;
    return level_by_level(low, fit, visit, true);
  }

  [[nodiscard]] std::uint64_t word(std::int32_t cpus, std::size_t w) const {
    return grid_.at_least(cpus, w) & allowed_.word(w);
  }
  // Neither reserved nor of a pool that is spread over.
  [[nodiscard]] std::uint64_t others(std::size_t w) const {
    return ~timeline_.reserved_word(w) & ~grid_.spread_word(w);
  }

  [[nodiscard]] std::uint32_t count_others(std::int32_t cpus) const {
    std::uint32_t count = 0;
    for (std::size_t w = 0; w < grid_.words(); ++w)
      if (const std::uint64_t left = word(cpus, w))
        count += static_cast<std::uint32_t>(std::popcount(left & others(w)));
    return count;
  }

  // Of equals those in the leaf of the topology that has the fewest idle nodes left, so that whole
  // leaves stay whole.
  struct Found {
    bool idle;
    std::int32_t free;
    std::uint32_t idle_in_leaf, leaf, node, fits;
    [[nodiscard]] auto fullest_first() const {
      return std::tuple{idle, free, idle_in_leaf, leaf, node};
    }
    [[nodiscard]] auto emptiest_first() const { return std::tuple{-free, node}; }
  };
  [[nodiscard]] Found found(std::uint32_t n, std::uint32_t fits) const {
    const std::uint32_t leaf = grid_.leaf(n);
    return {grid_.idle(n), grid_.free(n).cpus, grid_.idle_in_leaf(leaf), leaf, n, fits};
  }

  template <class Fit, class Visit, class Among>
  bool sorted(std::int32_t cpus, Fit& fit, Visit& visit, Among&& among,
              bool emptiest_first = false) const {
    std::vector<Found> nodes;
    for (std::size_t w = 0; w < grid_.words(); ++w) {
      const std::uint64_t some = word(cpus, w);
      if (some == 0) continue;
      any_in_word(some & among(w), w, [&](std::uint32_t n) {
        if (const std::uint32_t f = fit(n); f > 0) nodes.push_back(found(n, f));
        return false;
      });
    }
    if (emptiest_first)
      std::sort(nodes.begin(), nodes.end(), [](const Found& a, const Found& b) {
        return a.emptiest_first() < b.emptiest_first();
      });
    else
      std::sort(nodes.begin(), nodes.end(), [](const Found& a, const Found& b) {
        return a.fullest_first() < b.fullest_first();
      });
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const Found& f) { return visit(f.node, f.fits); });
  }

  template <class Fit, class Visit>
  bool level_by_level(std::int32_t cpus, Fit& fit, Visit& visit, bool idle) const {
    for (std::int32_t c = cpus; c <= grid_.most_cpus(); ++c) {
      if (grid_.count_with(c) == 0) continue;
      if (idle && grid_.levels() > 0) {
        if (leaf_by_leaf(c, fit, visit)) return true;
        continue;
      }
      for (std::size_t w = 0; w < grid_.words(); ++w) {
        const std::uint64_t exactly = word(c, w) & ~grid_.at_least(c + 1, w);
        if (exactly == 0) continue;
        const std::uint64_t family = idle ? grid_.idle_word(w) : ~grid_.idle_word(w);
        if (any_in_word(exactly & family & others(w), w, [&](std::uint32_t n) {
              const std::uint32_t f = fit(n);
              return f > 0 && visit(n, f);
            }))
          return true;
      }
    }
    return false;
  }

  // The idle nodes with exactly `cpus` cores: a heap, as the first few will usually do.
  template <class Fit, class Visit>
  bool leaf_by_leaf(std::int32_t cpus, Fit& fit, Visit& visit) const {
    std::vector<Found> nodes;
    for (std::size_t w = 0; w < grid_.words(); ++w) {
      const std::uint64_t exactly = word(cpus, w) & ~grid_.at_least(cpus + 1, w);
      if (exactly == 0) continue;
      any_in_word(exactly & grid_.idle_word(w) & others(w), w, [&](std::uint32_t n) {
        nodes.push_back(found(n, 0));
        return false;
      });
    }
    const auto later = [](const Found& a, const Found& b) {
      return b.fullest_first() < a.fullest_first();
    };
    std::make_heap(nodes.begin(), nodes.end(), later);
    while (!nodes.empty()) {
      std::pop_heap(nodes.begin(), nodes.end(), later);
      const std::uint32_t n = nodes.back().node;
      nodes.pop_back();
      if (const std::uint32_t f = fit(n); f > 0 && visit(n, f)) return true;
    }
    return false;
  }

  const Grid& grid_;
  const Timeline& timeline_;
  const Bits& allowed_;
  const JobClass& cls_;
  const Demand& d_;
  const Instant until_;
  Bits* const hopeful_;
  const Neighbours* const neighbours_;
};

constexpr std::uint32_t kMostLooked = 64;  // that fit, for one that leaves fewer GPUs idle

std::optional<std::vector<Share>> on_one_node(const NodeSearch& search, const JobClass& cls) {
  const Demand& d = cls.demand;
  std::optional<std::vector<Share>> place;
  if (d.tasks > d.most_per_node) return place;
  if (!cls.required.empty()) {
    if (search.available(cls.required[0]) && search.holds_all(cls.required[0]))
      place = {{cls.required[0], d.tasks}};
    return place;
  }
  if (!cls.key.shape.gpu_slice.empty()) {
    if (const auto n = search.by_slices()) place = {{*n, d.tasks}};
    return place;
  }
  // The first that fits, or one of its family that leaves fewer GPUs idle.
  std::int32_t fewest = 0;
  std::uint32_t family = 0, looked = 0;
  search.by_preference(std::int64_t{d.tasks} * d.cpus_per_task, d.tasks,
                       [&](std::uint32_t n, std::uint32_t) {
                         const std::int32_t left = search.gpus_left(n);
                         if (place && search.family(n) != family) return true;
                         if (!place || left < fewest) {
                           place = {{n, d.tasks}};
                           fewest = left;
                           family = search.family(n);
                         }
                         return fewest == 0 || ++looked == kMostLooked;
                       });
  return place;
}

// `least` tasks on each node that is not required by name; stops at `enough` nodes.
std::vector<Candidate> candidates(const NodeSearch& search, const JobClass& cls,
                                  std::uint32_t least, std::size_t enough) {
  std::vector<Candidate> found;
  for (const std::uint32_t n : cls.required) {
    const std::uint32_t fits = search.available(n) ? search.fits(n) : 0;
    if (fits == 0) return {};
    found.push_back({n, fits, true});
  }
  if (found.size() >= enough) return found;
  search.by_preference(std::int64_t{least} * cls.demand.cpus_per_task, least,
                       [&](std::uint32_t n, std::uint32_t fits) {
                         if (std::binary_search(cls.required.begin(), cls.required.end(), n))
                           return false;
                         found.push_back({n, fits, false});
                         return found.size() == enough;
                       });
  return found;
}

}  // namespace

bool has_devices(const Grid& grid, const JobClass& cls, std::uint32_t n, Instant end) {
  const JobShape& shape = cls.key.shape;
  if (!shape.gpu_slice.empty())
    return grid.node(n).slices.fits(ask_of(cls, end)) >= slices_for(cls);
  return grid.has_devices(n, cls.demand, cls.key.partition);
}

std::optional<std::vector<Share>> find_place(const Grid& grid, const Timeline& timeline,
                                             const Bits& allowed, const JobClass& cls,
                                             Bits* hopeful, const Neighbours* neighbours) {
  const Demand& d = cls.demand;
  if (d.max_nodes > 1) hopeful = nullptr;
  const NodeSearch search(grid, timeline, hopeful != nullptr ? *hopeful : allowed, cls, hopeful,
                          neighbours);
  if (d.min_nodes == 1 && cls.required.size() <= 1) {
    if (auto place = on_one_node(search, cls)) return place;
    if (d.max_nodes == 1) return std::nullopt;
  }
  const auto required = static_cast<std::uint32_t>(cls.required.size());
  const std::uint32_t share = (d.tasks + d.min_nodes - 1) / d.min_nodes;
  const bool limited = neighbours != nullptr && !cls.key.shape.anti_affinity.empty();
  if (cls.key.shape.topology != TopologyWish::none || limited) {
    // Any node may belong to the best domain, or one that is full.
    for (const std::uint32_t least : {share, 1u}) {
      if (least > d.most_per_node) continue;
      auto all = candidates(search, cls, least, grid.size() + 1);
      if (limited) neighbours->trim(all);
      auto place = choose_places(grid, cls, all);
      if (place || least == 1) return place;
    }
  }
  if (share <= d.most_per_node) {
    const auto even = candidates(search, cls, share, d.min_nodes);
    if (even.size() >= d.min_nodes)
      if (auto place = choose_nodes(d, even, required)) return place;
    if (share == 1) return std::nullopt;  // a node for each task is not there
  }
  const auto all = candidates(search, cls, 1, grid.size() + 1);
  return choose_nodes(d, all, required);
}

std::vector<NodeGrant> make_grants(const Grid& grid, const JobClass& cls,
                                   const std::vector<Share>& shares, Instant end) {
  std::vector<NodeGrant> grants;
  grants.reserve(shares.size());
  for (const auto& [node, tasks] : shares) {
    const Room need = need_for(cls.demand, grid.room(node), tasks);
    grants.push_back({NodeId{node}, grid.choose_cpus(node, need.cpus), need.memory, need.scratch,
                      static_cast<std::uint32_t>(need.gpus), tasks,
                      choose_devices(grid, cls, node, need, end),
                      grid.choose_gres(node, cls.key.shape.gres)});
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
  if (const auto level = grid.level(shape.topology_level))
    for (const Candidate& c : all)
      if (const std::uint32_t domain = grid.domain(*level, c.node); domain != kNoIndex)
        most = std::max(most, ++domains[domain]);
  return Verdict{Reason::topology, most, cls.demand.min_nodes, shape.topology_level};
}

std::uint32_t count_fitting(const Grid& grid, const Bits& allowed, const JobClass& cls) {
  const Demand& d = cls.demand;
  std::uint32_t count = 0;
  if (d.cpus_per_task > static_cast<std::uint32_t>(grid.most_cpus())) return 0;
  const std::uint32_t least = (d.tasks + d.max_nodes - 1) / d.max_nodes;
  for (std::size_t w = 0; w < grid.words(); ++w)
    any_in_word(grid.at_least(static_cast<std::int32_t>(d.cpus_per_task), w) & allowed.word(w), w,
                [&](std::uint32_t n) {
                  count += tasks_fitting(d, grid.room(n), grid.free(n)) >= least ? 1 : 0;
                  return false;
                });
  return count;
}

}  // namespace gantry::sched
