#include "ctld/sched/place/place.h"

#include <algorithm>
#include <unordered_map>

#include "ctld/sched/nodes/devices.h"
#include "ctld/sched/nodes/topology.h"

namespace gantry::sched {
namespace {

// A search for one class among the nodes that have enough cores free.
class NodeSearch {
 public:
  NodeSearch(const Grid& grid, const Timeline& timeline, const Bits& allowed, const JobClass& cls,
             Bits* hopeful, const Neighbours* neighbours)
      : grid_(grid),
        timeline_(timeline),
        allowed_(allowed),
        cls_(cls),
        d_(cls.demand),
        until_(Timeline::end_of(timeline.now(), cls.key.least_limit())),
        hopeful_(hopeful),
        neighbours_(neighbours) {}

  [[nodiscard]] bool available(std::uint32_t n) const {
    return grid_.available(n) && has_devices(grid_, cls_, n, until_) &&
           (neighbours_ == nullptr || neighbours_->allows(n));
  }

  // How many of the job's tasks fit on the node; the node must be available.
  [[nodiscard]] std::uint32_t fits(std::uint32_t n) const {
    if (!has_devices(grid_, cls_, n, until_)) return 0;
    return timeline_.fits(n, d_, timeline_.now(), until_, grid_.free(n));
  }

  [[nodiscard]] bool holds_all(std::uint32_t n) const {
    if (!has_devices(grid_, cls_, n, until_)) return false;
    return timeline_.holds(n, d_, timeline_.now(), until_, grid_.free(n), d_.tasks);
  }

  // For a job on one node: returns the node whose GPU suits its slices best. A job that asks for a
  // part of a slice looks first at nodes where jobs share slices. Nodes on which places are kept
  // for other jobs come next: the job may end before these need them. All other nodes come last.
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
    if (ask.part > DevicePart{} && grid_.slices().any_with_parts([&](std::uint32_t n) {
          return grid_.slices().on(n).room_beside(ask) && find(n);
        }))
      return found;
    for (const std::uint32_t n : grid_.slices().held_nodes())
      if (find(n)) return found;
    (void)grid_.slices().fleet().any(cls_.key.shape.gpu_slice, find);
    return found;
  }

  // For a job on one node. A job without GPUs looks first at nodes without idle GPUs. Nodes of
  // pools that are filled from the emptiest node on are left out.
  [[nodiscard]] std::optional<std::uint32_t> by_score(GpuScores& scores) {
    const std::int64_t cpus = d_.cores_for(d_.tasks);
    if (cpus > grid_.sets().most_cpus()) return std::nullopt;
    const auto low = static_cast<std::int32_t>(cpus);
    const bool wants = d_.gpus > 0 || d_.gpu_share > DevicePart{};
    scores.ask(cls_);
    if (wants) {
      if (timeline_.any_reserved())
        if (const auto n = best_of(scores, low, [this](std::size_t w) {
              return timeline_.reserved_word(w) & ~grid_.sets().spread_word(w);
            }))
          return n;
    } else {
      except_ = &scores;
      std::optional<std::uint32_t> found;
      auto fit = [this](std::uint32_t n) { return held(n) ? d_.tasks : 0u; };
      auto visit = [&](std::uint32_t n, std::uint32_t) {
        found = n;
        return true;
      };
      (void)packed(low, fit, visit);
      except_ = nullptr;
      if (found) return found;
    }
    const std::uint32_t count = count_others(low);
    if (count == 0) return std::nullopt;
    if (count <= kFew) return best_of(scores, low, [this](std::size_t w) { return others(w); });
    return best_state(scores);
  }

  // GPUs that stay free on the node if the job runs there; 0 if its part goes to a GPU that its
  // tenant shares already.
  [[nodiscard]] std::int32_t gpus_left(std::uint32_t n) const {
    const GridNode& node = grid_.node(n);
    if (d_.gpu_share > DevicePart{} &&
        node.shares.room_beside(node.devices, cls_.key.partition, d_.gpu_share))
      return 0;
    return std::max(0, grid_.free(n).gpus - static_cast<std::int32_t>(d_.gpus));
  }
  // Nodes of one family are adjacent in the order of preference: reserved, in use, idle. Each node
  // of a pool that is filled from the emptiest node on is a family of its own.
  [[nodiscard]] std::uint32_t family(std::uint32_t n) const {
    const auto bit = [n](std::uint64_t word) { return (word >> (n % 64)) & 1; };
    if (bit(grid_.sets().spread_word(n / 64)) != 0) return 4 + n;
    return (bit(timeline_.reserved_word(n / 64)) != 0 ? 2 : 0) + (grid_.idle(n) ? 1 : 0);
  }

  // Calls visit(node, fits) for nodes with at least `cpus` cores free on which at least `least`
  // tasks fit, in order of preference, until it returns true.
  template <class Visit>
  void by_preference(std::int64_t cpus, std::uint32_t least, Visit&& visit) const {
    // A request of one node for all tasks is the usual one, and checking it is cheaper than
    // counting.
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
  // The key that compares nodes with GPUs; the least is the best: the score, then whether the node
  // is idle. While no requests are known, the free GPUs follow; then, and for jobs without GPUs,
  // the free cores follow.
  using Rating = std::tuple<int, bool, std::int32_t, std::int32_t>;
  [[nodiscard]] Rating rating(const GpuScores& scores, int score, bool idle, std::int32_t gpus,
                              std::int32_t cpus) const {
    const bool wants = d_.gpus > 0 || d_.gpu_share > DevicePart{};
    return {-score, idle, scores.blind() ? gpus : 0, scores.blind() || !wants ? cpus : 0};
  }
  [[nodiscard]] bool held(std::uint32_t n) const {
    if (neighbours_ != nullptr && !neighbours_->allows(n)) return false;
    if (holds_all(n)) return true;
    if (hopeful_ != nullptr) hopeful_->clear(n);
    return false;
  }
  [[nodiscard]] std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> by_leaf(
      std::uint32_t n) const {
    const std::uint32_t leaf = grid_.levels().leaf(n);
    return {grid_.levels().idle_in_leaf(leaf), leaf, n};
  }

  // Examines each node.
  template <class Among>
  std::optional<std::uint32_t> best_of(GpuScores& scores, std::int32_t low, Among&& among) const {
    std::optional<std::uint32_t> best;
    Rating of_best;
    for (std::size_t w = 0; w < grid_.sets().words(); ++w) {
      const std::uint64_t some = word(low, w);
      if (some == 0) continue;
      any_in_word(some & among(w), w, [&](std::uint32_t n) {
        if (!held(n)) return false;
        const Rating of = rating(scores, scores.score(n).value_or(0), grid_.idle(n), gpus_left(n),
                                 grid_.free(n).cpus);
        if (best && std::pair{of_best, by_leaf(*best)} <= std::pair{of, by_leaf(n)}) return false;
        best = n;
        of_best = of;
        return false;
      });
    }
    return best;
  }

  // Examines state by state; the nodes of one state differ only in what held() checks.
  std::optional<std::uint32_t> best_state(GpuScores& scores) const {
    struct Rated {
      Rating rating;
      const std::vector<std::uint32_t>* nodes;
    };
    std::vector<Rated> states;
    scores.each([&](const GpuScores::State& s, const std::vector<std::uint32_t>& nodes, int score) {
      const auto left = static_cast<std::int32_t>(s.room.gpus) - static_cast<std::int32_t>(d_.gpus);
      states.push_back({rating(scores, score, s.idle, left, s.room.cpus), &nodes});
    });
    const auto worse = [](const Rated& a, const Rated& b) { return b.rating < a.rating; };
    std::make_heap(states.begin(), states.end(), worse);
    std::optional<std::uint32_t> best;
    Rating of_best;
    while (!states.empty()) {
      std::pop_heap(states.begin(), states.end(), worse);
      const Rated next = states.back();
      states.pop_back();
      if (best && of_best < next.rating) break;
      for (const std::uint32_t n : *next.nodes) {
        if (!usable(n) || !held(n)) continue;
        if (!best || by_leaf(n) < by_leaf(*best)) best = n;
        of_best = next.rating;
        if (grid_.levels().count() == 0) break;
      }
    }
    return best;
  }
  [[nodiscard]] bool usable(std::uint32_t n) const {
    const std::uint64_t bit = std::uint64_t{1} << (n % 64);
    return allowed_.test(n) && grid_.available(n) && (others(n / 64) & bit) != 0;
  }

  static constexpr std::uint32_t kFew = 64;  // up to this many nodes are examined one by one

  // `fit(node)` returns how many tasks would go to the node; 0 = not enough.
  template <class Fit, class Visit>
  void in_order(std::int64_t cpus, Fit&& fit, Visit& visit) const {
    if (cpus > grid_.sets().most_cpus()) return;
    const auto low = static_cast<std::int32_t>(cpus);
    if (packed(low, fit, visit) || !grid_.sets().any_spread()) return;
    sorted(
        low, fit, visit, [this](std::size_t w) { return grid_.sets().spread_word(w); }, true);
  }

  template <class Fit, class Visit>
  bool packed(std::int32_t low, Fit& fit, Visit& visit) const {
    if (timeline_.any_reserved() && sorted(low, fit, visit, [this](std::size_t w) {
          return timeline_.reserved_word(w) & ~grid_.sets().spread_word(w);
        }))
      return true;
    const std::uint32_t count = count_others(low);
    if (count == 0) return false;
    if (count <= kFew) return sorted(low, fit, visit, [this](std::size_t w) { return others(w); });
    if (!d_.exclusive && level_by_level(low, fit, visit, false)) return true;
    return level_by_level(low, fit, visit, true);
  }

  [[nodiscard]] std::uint64_t word(std::int32_t cpus, std::size_t w) const {
    return grid_.sets().at_least(cpus, w) & allowed_.word(w);
  }
  // Nodes that are neither reserved nor in a pool that is filled from the emptiest node on; with
  // except_, also without idle GPUs.
  [[nodiscard]] std::uint64_t others(std::size_t w) const {
    const std::uint64_t idle_gpus = except_ != nullptr ? except_->idle_gpus_word(w) : 0;
    return ~timeline_.reserved_word(w) & ~grid_.sets().spread_word(w) & ~idle_gpus;
  }

  [[nodiscard]] std::uint32_t count_others(std::int32_t cpus) const {
    std::uint32_t count = 0;
    for (std::size_t w = 0; w < grid_.sets().words(); ++w)
      if (const std::uint64_t left = word(cpus, w))
        count += static_cast<std::uint32_t>(std::popcount(left & others(w)));
    return count;
  }

  // Among equal nodes, those come first that lie in the leaf of the topology with the fewest idle
  // nodes, so that whole leaves stay idle.
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
    const std::uint32_t leaf = grid_.levels().leaf(n);
    return {grid_.idle(n), grid_.free(n).cpus, grid_.levels().idle_in_leaf(leaf), leaf, n, fits};
  }

  template <class Fit, class Visit, class Among>
  bool sorted(std::int32_t cpus, Fit& fit, Visit& visit, Among&& among,
              bool emptiest_first = false) const {
    std::vector<Found> nodes;
    for (std::size_t w = 0; w < grid_.sets().words(); ++w) {
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
    for (std::int32_t c = cpus; c <= grid_.sets().most_cpus(); ++c) {
      if (grid_.sets().count_with(c) == 0) continue;
      if (idle && grid_.levels().count() > 0) {
        if (leaf_by_leaf(c, fit, visit)) return true;
        continue;
      }
      for (std::size_t w = 0; w < grid_.sets().words(); ++w) {
        const std::uint64_t exactly = word(c, w) & ~grid_.sets().at_least(c + 1, w);
        if (exactly == 0) continue;
        const std::uint64_t family = idle ? grid_.sets().idle_word(w) : ~grid_.sets().idle_word(w);
        if (any_in_word(exactly & family & others(w), w, [&](std::uint32_t n) {
              const std::uint32_t f = fit(n);
              return f > 0 && visit(n, f);
            }))
          return true;
      }
    }
    return false;
  }

  // The idle nodes with exactly `cpus` cores. A heap suffices, because usually one of the first
  // nodes fits.
  template <class Fit, class Visit>
  bool leaf_by_leaf(std::int32_t cpus, Fit& fit, Visit& visit) const {
    std::vector<Found> nodes;
    for (std::size_t w = 0; w < grid_.sets().words(); ++w) {
      const std::uint64_t exactly = word(cpus, w) & ~grid_.sets().at_least(cpus + 1, w);
      if (exactly == 0) continue;
      any_in_word(exactly & grid_.sets().idle_word(w) & others(w), w, [&](std::uint32_t n) {
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
  const GpuScores* except_ = nullptr;  // leaves out nodes with idle GPUs according to these scores
};

constexpr std::uint32_t kMostLooked = 64;  // the most fitting nodes that are compared

std::optional<std::vector<Share>> on_one_node(NodeSearch& search, const JobClass& cls,
                                              const Grid& grid, GpuScores* scores) {
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
  if (scores != nullptr) {
    if (const auto n = search.by_score(*scores)) return {{{*n, d.tasks}}};
    if (!grid.sets().any_spread()) return place;
  }
  // Takes the first node that fits, or a node of the same family on which fewer GPUs stay idle.
  std::int32_t fewest = 0;
  std::uint32_t family = 0, looked = 0;
  search.by_preference(d.cores_for(d.tasks), d.tasks, [&](std::uint32_t n, std::uint32_t) {
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

// Nodes on which `least` tasks fit (any number on nodes required by name); stops at `enough` nodes.
std::vector<Candidate> candidates(const NodeSearch& search, const JobClass& cls,
                                  std::uint32_t least, std::size_t enough) {
  std::vector<Candidate> found;
  for (const std::uint32_t n : cls.required) {
    const std::uint32_t fits = search.available(n) ? search.fits(n) : 0;
    if (fits == 0) return {};
    found.push_back({n, fits, true});
  }
  if (found.size() >= enough) return found;
  search.by_preference(cls.demand.cores_for(least), least,
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
    return grid.slices().on(n).fits(ask_of(cls, end)) >= slices_for(cls);
  return has_free_devices(grid, n, cls.demand, cls.key.partition);
}

std::optional<std::vector<Share>> find_place(const Grid& grid, const Timeline& timeline,
                                             const Bits& allowed, const JobClass& cls,
                                             Bits* hopeful, const Neighbours* neighbours,
                                             GpuScores* scores) {
  const Demand& d = cls.demand;
  if (d.max_nodes > 1) hopeful = nullptr;
  NodeSearch search(grid, timeline, hopeful != nullptr ? *hopeful : allowed, cls, hopeful,
                    neighbours);
  const bool one_by_choice = d.node_layout != NodeLayout::as_many_as_may_be || d.max_nodes == 1;
  if (d.min_nodes == 1 && cls.required.size() <= 1 && one_by_choice) {
    if (auto place = on_one_node(search, cls, grid, scores)) return place;
    if (d.max_nodes == 1) return std::nullopt;
  }
  const auto required = static_cast<std::uint32_t>(cls.required.size());
  const std::uint32_t share = (d.tasks + d.min_nodes - 1) / d.min_nodes;
  const bool limited = neighbours != nullptr && !cls.key.shape.anti_affinity.empty();
  if (cls.key.shape.topology != TopologyWish::none || limited) {
    // All nodes are needed: any of them may belong to the best domain, or be in a domain that is
    // full.
    for (const std::uint32_t least : {share, 1u}) {
      if (least > d.most_per_node) continue;
      auto all = candidates(search, cls, least, grid.size() + 1);
      if (limited) neighbours->trim(all);
      auto place = choose_places(grid, cls, all);
      if (place || least == 1) return place;
    }
  }
  if (d.node_layout != NodeLayout::any)  // any node may be one of those that it needs
    return choose_nodes(d, candidates(search, cls, 1, grid.size() + 1), required);
  if (share <= d.most_per_node) {
    const auto even = candidates(search, cls, share, d.min_nodes);
    if (even.size() >= d.min_nodes)
      if (auto place = choose_nodes(d, even, required)) return place;
    if (share == 1) return std::nullopt;  // not enough nodes can take one task each
  }
  const auto all = candidates(search, cls, 1, grid.size() + 1);
  return choose_nodes(d, all, required);
}

}  // namespace gantry::sched
