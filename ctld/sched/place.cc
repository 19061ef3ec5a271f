#include "ctld/sched/place.h"

#include <algorithm>

namespace gantry::sched {
namespace {

// A search of one class among the nodes that have some number of cores free.
class Search {
 public:
  Search(const Grid& grid, const Timeline& timeline, const Bits& allowed, const JobClass& cls,
         Bits* hopeful)
      : grid_(grid),
        timeline_(timeline),
        allowed_(allowed),
        cls_(cls),
        d_(cls.demand),
        until_(Timeline::end_of(timeline.now(), cls.key.time_limit)),
        hopeful_(hopeful) {}

  [[nodiscard]] bool available(std::uint32_t n) const { return grid_.available(n); }

  // Of an available node:
  [[nodiscard]] std::uint32_t fits(std::uint32_t n) const {
    return timeline_.fits(n, d_, timeline_.now(), until_, grid_.free(n));
  }

  [[nodiscard]] bool holds_all(std::uint32_t n) const {
    return timeline_.holds(n, d_, timeline_.now(), until_, grid_.free(n), d_.tasks);
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
            if (holds_all(n)) return d_.tasks;
            if (hopeful_ != nullptr) hopeful_->clear(n);
            return 0u;
          },
          visit);
    else
      in_order(
          cpus,
          [this, least](std::uint32_t n) {
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
    if (timeline_.any_reserved() &&
        sorted(low, fit, visit, [this](std::size_t w) { return timeline_.reserved_word(w); }))
      return;
    const std::uint32_t count = count_unreserved(low);
    if (count == 0) return;
    if (count <= kFew) {
      sorted(low, fit, visit, [this](std::size_t w) { return ~timeline_.reserved_word(w); });
      return;
    }
    if (!d_.exclusive && level_by_level(low, fit, visit, false)) return;
    level_by_level(low, fit, visit, true);
  }

  [[nodiscard]] std::uint64_t word(std::int32_t cpus, std::size_t w) const {
    return grid_.at_least(cpus, w) & allowed_.word(w);
  }

  [[nodiscard]] std::uint32_t count_unreserved(std::int32_t cpus) const {
    std::uint32_t count = 0;
    for (std::size_t w = 0; w < grid_.words(); ++w)
      if (const std::uint64_t left = word(cpus, w))
        count += static_cast<std::uint32_t>(std::popcount(left & ~timeline_.reserved_word(w)));
    return count;
  }

  template <class Fit, class Visit, class Among>
  bool sorted(std::int32_t cpus, Fit& fit, Visit& visit, Among&& among) const {
    struct Found {
      bool idle;
      std::int32_t free;
      std::uint32_t node, fits;
    };
    std::vector<Found> found;
    for (std::size_t w = 0; w < grid_.words(); ++w) {
      const std::uint64_t some = word(cpus, w);
      if (some == 0) continue;
      any_in_word(some & among(w), w, [&](std::uint32_t n) {
        if (const std::uint32_t f = fit(n); f > 0)
          found.push_back({grid_.idle(n), grid_.free(n).cpus, n, f});
        return false;
      });
    }
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return std::tuple{a.idle, a.free, a.node} < std::tuple{b.idle, b.free, b.node};
    });
    return std::any_of(found.begin(), found.end(),
                       [&](const Found& f) { return visit(f.node, f.fits); });
  }

  template <class Fit, class Visit>
  bool level_by_level(std::int32_t cpus, Fit& fit, Visit& visit, bool idle) const {
    for (std::int32_t c = cpus; c <= grid_.most_cpus(); ++c) {
      if (grid_.count_with(c) == 0) continue;
      for (std::size_t w = 0; w < grid_.words(); ++w) {
        const std::uint64_t exactly = word(c, w) & ~grid_.at_least(c + 1, w);
        if (exactly == 0) continue;
        const std::uint64_t family = idle ? grid_.idle_word(w) : ~grid_.idle_word(w);
        if (any_in_word(exactly & family & ~timeline_.reserved_word(w), w, [&](std::uint32_t n) {
              const std::uint32_t f = fit(n);
              return f > 0 && visit(n, f);
            }))
          return true;
      }
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
};

std::optional<std::vector<Share>> on_one_node(const Search& search, const JobClass& cls) {
  const Demand& d = cls.demand;
  std::optional<std::vector<Share>> place;
  if (d.tasks > d.most_per_node) return place;
  if (!cls.required.empty()) {
    if (search.available(cls.required[0]) && search.holds_all(cls.required[0]))
      place = {{cls.required[0], d.tasks}};
    return place;
  }
  search.by_preference(std::int64_t{d.tasks} * d.cpus_per_task, d.tasks,
                       [&](std::uint32_t n, std::uint32_t) {
                         place = {{n, d.tasks}};
                         return true;
                       });
  return place;
}

// `least` tasks on each node that is not required by name; stops at `enough` nodes.
std::vector<Candidate> candidates(const Search& search, const JobClass& cls, std::uint32_t least,
                                  std::size_t enough) {
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

std::optional<std::vector<Share>> find_place(const Grid& grid, const Timeline& timeline,
                                             const Bits& allowed, const JobClass& cls,
                                             Bits* hopeful) {
  const Demand& d = cls.demand;
  if (d.max_nodes > 1) hopeful = nullptr;
  const Search search(grid, timeline, hopeful != nullptr ? *hopeful : allowed, cls, hopeful);
  if (d.min_nodes == 1 && cls.required.size() <= 1) {
    if (auto place = on_one_node(search, cls)) return place;
    if (d.max_nodes == 1) return std::nullopt;
  }
  const auto required = static_cast<std::uint32_t>(cls.required.size());
  const std::uint32_t share = (d.tasks + d.min_nodes - 1) / d.min_nodes;
  if (share <= d.most_per_node) {
    const auto even = candidates(search, cls, share, d.min_nodes);
    if (even.size() >= d.min_nodes)
      if (auto place = choose_nodes(d, even, required)) return place;
    if (share == 1) return std::nullopt;  // a node for each task is not there
  }
  const auto all = candidates(search, cls, 1, grid.size() + 1);
  return choose_nodes(d, all, required);
}

std::vector<NodeGrant> make_grants(const Grid& grid, const Demand& demand,
                                   const std::vector<Share>& shares) {
  std::vector<NodeGrant> grants;
  grants.reserve(shares.size());
  for (const auto& [node, tasks] : shares) {
    const Room need = need_for(demand, grid.room(node), tasks);
    grants.push_back({NodeId{node}, grid.choose_cpus(node, need.cpus), need.memory, need.scratch,
                      static_cast<std::uint32_t>(need.gpus), tasks});
  }
  return grants;
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
