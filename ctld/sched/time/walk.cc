// Timeline::earliest(): the walk along the ends.
//
// One node: only a node where something is given back can become good enough, so nothing is looked
// at beforehand, and the walk ends at the first one that is. Several nodes: how many tasks fit is
// noted for every allowed node, and counted by number, so that a step which cannot succeed costs
// one comparison.
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "common/assert.h"
#include "ctld/sched/nodes/neighbours.h"
#include "ctld/sched/nodes/topology.h"
#include "ctld/sched/time/timeline.h"

namespace gantry::sched {

class Walk {
 public:
  Walk(Timeline& timeline, const JobClass& cls, const Bits& allowed)
      : t_(timeline),
        cls_(cls),
        d_(cls.demand),
        allowed_(allowed),
        single_(d_.min_nodes == 1 && d_.max_nodes == 1),
        stamp_(++t_.stamp_) {
    const OrderedSlots& ends = t_.running_.ends();
    overdue_ = ends.begin();
    running_ = first_running_ = t_.running_.first_ending_after(t_.now_);
    overdue_done_ = overdue_ == running_;
    t_.sort_freed();
    while (window_ < t_.windows_.size() && t_.windows_[window_].until <= t_.now_) ++window_;
    if (cls.key.shape.topology == TopologyWish::required)
      level_ = t_.grid_.level(cls.key.shape.topology_level).value_or(0);
  }

  std::optional<Slot> run(Instant from, Instant before, std::uint64_t& steps) {
    if (from > t_.now_) {
      skip_to(from);
      steps += dirty_.size();
      if (auto found = single_ ? try_one_node(from) : try_nodes(from)) return found;
    } else if (!single_) {
      note_all();
    }
    while (const auto at = next_time()) {
      if (*at >= before) break;
      dirty_.clear();
      ++moment_;
      give_back(*at);
      steps += dirty_.size();
      auto found = single_ ? try_one_node(*at) : try_nodes(*at);
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  using Note = Timeline::Note;

  Note& note(std::uint32_t n) {
    Note& note = t_.notes_[n];
    if (note.stamp != stamp_) note = {stamp_, 0, 0, t_.grid_.free(n)};
    return note;
  }
  [[nodiscard]] bool usable(std::uint32_t n) const {
    return allowed_.test(n) && t_.grid_.available(n);
  }
  [[nodiscard]] Instant until(Instant start) const {
    return Timeline::end_of(start, cls_.key.time_limit);
  }

  [[nodiscard]] std::optional<Instant> next_time() const {
    std::optional<Instant> next;
    const auto offer = [&](Instant at) { next = next ? std::min(*next, at) : at; };
    const OrderedSlots& ends = t_.running_.ends();
    if (!overdue_done_) offer(t_.now_ + Timeline::kOverdue);
    if (!ends.at_end(running_)) offer(t_.running_.end_of(ends[running_]).at);
    if (freed_ < t_.freed_.size()) offer(t_.freed_[freed_].at);
    if (window_ < t_.windows_.size()) offer(t_.windows_[window_].until);
    return next;
  }

  // Everything that ends by then; afterwards each node is looked at.
  void skip_to(Instant from) {
    ++moment_;
    skipping_ = true;
    give_back(from);
    skipping_ = false;
    dirty_.clear();
    ++moment_;
    for (std::size_t w = 0; w < allowed_.words(); ++w)
      any_in_word(allowed_.word(w), w, [&](std::uint32_t n) {
        give_back(n, {});
        return false;
      });
  }

  // What ends at `at`, and nodes where a reservation has come too near. All of it, or for one node
  // the next piece of it (then next_time() stays for the rest).
  void give_back(Instant at) {
    const OrderedSlots& ends = t_.running_.ends();
    const auto enough = [this] { return single_ && !skipping_ && !dirty_.empty(); };
    if (!overdue_done_ && at >= t_.now_ + Timeline::kOverdue) {
      for (; overdue_ != first_running_ && !enough(); overdue_ = ends.next(overdue_))
        release(ends[overdue_]);
      overdue_done_ = overdue_ == first_running_;
    }
    for (; !ends.at_end(running_) && !enough(); running_ = ends.next(running_)) {
      const std::uint32_t slot = ends[running_];
      if (t_.running_.end_of(slot).at > at) break;
      fetch_soon(ends);
      release(slot);
    }
    for (; freed_ < t_.freed_.size() && t_.freed_[freed_].at <= at && !enough(); ++freed_)
      give_back(t_.freed_[freed_].node, t_.freed_[freed_].room);
    for (; window_ < t_.windows_.size() && t_.windows_[window_].until <= at; ++window_)
      for (const std::uint32_t n : t_.windows_[window_].nodes) give_back(n, {});
    for (; !expiring_.empty() && expiring_.top().first < at; expiring_.pop())
      give_back(expiring_.top().second, {});
  }
  // A walk of thousands of ends mostly waits for memory.
  void fetch_soon(const OrderedSlots& ends) {
    __builtin_prefetch(&t_.running_.end_of(ends.soon(running_, 16)));
    const End& end = t_.running_.end_of(ends.soon(running_, 8));
    __builtin_prefetch(&t_.notes_[end.node]);
  }
  void release(std::uint32_t slot) {
    const End& end = t_.running_.end_of(slot);
    if (end.nodes == 1) return give_back(end.node, end.room);
    for (const Use& use : t_.running_[slot].uses) give_back(use.node, use.room);
  }
  void give_back(std::uint32_t n, const Room& room) {
    if (!usable(n)) return;
    Note& node = note(n);
    node.room += room;
    if (node.dirty == moment_) return;
    node.dirty = moment_;
    dirty_.push_back(n);
  }

  std::optional<Slot> try_one_node(Instant at) {
    const std::uint32_t* best = nullptr;
    const auto neighbours = neighbours_at(at);
    // As place.h has it: the fewest GPUs left idle, then the fewest cores.
    const auto key = [this](std::uint32_t n) {
      const Room& room = note(n).room;
      return std::tuple{std::max(0, room.gpus - static_cast<std::int32_t>(d_.gpus)), room.cpus, n};
    };
    for (const std::uint32_t& n : dirty_) {
      if (neighbours && !neighbours->allows(n)) continue;
      if (!cls_.required.empty() && cls_.required[0] != n) continue;
      const Room& room = note(n).room;
      if (!t_.holds(n, d_, at, until(at), room, d_.tasks)) continue;
      if (!best || key(n) < key(*best)) best = &n;
    }
    if (!best) return std::nullopt;
    return Slot{at, {{*best, d_.tasks}}, {t_.room_at(*best, at)}};
  }

  // Of which user the job will be is not known here: as if of none.
  std::optional<Neighbours> neighbours_at(Instant at) const {
    if (Neighbours::none(t_.running_, cls_)) return std::nullopt;
    return std::optional<Neighbours>(std::in_place, t_.running_, t_.grid_, cls_, kNoShare, at);
  }

  void note_all() {
    for (std::size_t w = 0; w < allowed_.words(); ++w)
      any_in_word(allowed_.word(w), w, [&](std::uint32_t n) {
        if (t_.grid_.available(n)) count(n, t_.now_);
        return false;
      });
  }

  // (Re)counts what fits on a node for a start at `at`.
  void count(std::uint32_t n, Instant at) {
    Note& node = note(n);
    const std::uint32_t fits = t_.fits(n, d_, at, until(at), node.room);
    if (t_.reserved_.test(n) || t_.closed(n))
      if (const auto same = t_.same_until(n, at, until(at))) expiring_.push({*same, n});
    if (fits == node.fits) return;
    tasks_ += fits;
    tasks_ -= node.fits;
    if (by_fit_.size() <= std::max(fits, node.fits))
      by_fit_.resize(std::max(fits, node.fits) + 1, 0);
    if (node.fits > 0) --by_fit_[node.fits];
    if (fits > 0) ++by_fit_[fits];
    nodes_ += (fits > 0 ? 1 : 0) - (node.fits > 0 ? 1 : 0);
    if (level_) {
      Sum& in_domain = domains_[t_.grid_.domain(*level_, n)];
      in_domain.nodes += (fits > 0 ? 1 : 0) - (node.fits > 0 ? 1 : 0);
      in_domain.tasks += fits;
      in_domain.tasks -= node.fits;
    }
    node.fits = fits;
  }

  // One domain must have all; only one where something changed can have become enough.
  [[nodiscard]] bool possible_in_domain() const {
    return std::any_of(dirty_.begin(), dirty_.end(), [&](std::uint32_t n) {
      const auto it = domains_.find(t_.grid_.domain(*level_, n));
      return it != domains_.end() && it->second.nodes >= d_.min_nodes &&
             it->second.tasks >= d_.tasks;
    });
  }

  [[nodiscard]] bool possible() const {
    if (nodes_ < d_.min_nodes || tasks_ < d_.tasks) return false;
    std::uint64_t nodes = 0, tasks = 0;
    for (std::size_t f = by_fit_.size(); f-- > 1 && nodes < d_.max_nodes;) {
      const std::uint64_t taken = std::min<std::uint64_t>(by_fit_[f], d_.max_nodes - nodes);
      nodes += taken;
      tasks += taken * f;
    }
    return tasks >= d_.tasks &&
           std::all_of(cls_.required.begin(), cls_.required.end(), [&](std::uint32_t n) {
             return t_.notes_[n].stamp == stamp_ && t_.notes_[n].fits > 0;
           });
  }

  std::optional<Slot> try_nodes(Instant at) {
    for (const std::uint32_t n : dirty_) count(n, at);
    if (!possible() || (level_ && !possible_in_domain())) return std::nullopt;
    // Nodes that are in use now come first: those that are free serve who can start before.
    struct Ranked {
      bool free_now;
      std::int32_t cpus;
      Candidate candidate;
    };
    std::vector<Ranked> ranked;
    const auto neighbours = neighbours_at(at);
    for (std::size_t w = 0; w < allowed_.words(); ++w)
      any_in_word(allowed_.word(w), w, [&](std::uint32_t n) {
        const Note& node = t_.notes_[n];
        if (node.stamp != stamp_ || node.fits == 0) return false;
        if (neighbours && !neighbours->allows(n)) return false;
        const bool required = std::binary_search(cls_.required.begin(), cls_.required.end(), n);
        ranked.push_back({node.room == t_.grid_.free(n), node.room.cpus, {n, node.fits, required}});
        return false;
      });
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
      return std::pair{a.free_now, a.cpus} < std::pair{b.free_now, b.cpus};
    });
    std::vector<Candidate> candidates;
    for (const Ranked& r : ranked) candidates.push_back(r.candidate);
    if (neighbours) neighbours->trim(candidates);
    auto shares = choose_places(t_.grid_, cls_, candidates);
    if (!shares) return std::nullopt;
    Slot slot{at, std::move(*shares), {}};
    for (const Share& s : slot.shares) slot.room.push_back(note(s.node).room);
    return slot;
  }

  Timeline& t_;
  const JobClass& cls_;
  const Demand& d_;
  const Bits& allowed_;
  const bool single_;
  const std::uint32_t stamp_;
  std::uint32_t moment_ = 0;
  bool skipping_ = false;  // to a time: who has more room on the way does not matter
  OrderedSlots::Cursor overdue_, first_running_, running_;
  bool overdue_done_ = false;
  std::size_t freed_ = 0;
  std::size_t window_ = 0;
  std::vector<std::uint32_t> dirty_;
  // Several nodes only:
  std::vector<std::uint32_t> by_fit_;  // nodes by tasks that fit
  std::uint64_t nodes_ = 0, tasks_ = 0;
  struct Sum {
    std::uint64_t nodes = 0, tasks = 0;
  };
  std::optional<std::uint32_t> level_;              // of the topology, if one domain must have all
  std::unordered_map<std::uint32_t, Sum> domains_;  // of that level
  using Expiry = std::pair<Instant, std::uint32_t>;
  std::priority_queue<Expiry, std::vector<Expiry>, std::greater<>> expiring_;
};

std::optional<Slot> Timeline::earliest(const JobClass& cls, const Bits& allowed, Instant from,
                                       std::uint64_t& steps, Instant before) {
  if (const Window* own = own_window()) from = std::max(from, own->from);
  if (from >= before) return std::nullopt;
  return Walk(*this, cls, allowed).run(from, before, steps);
}

}  // namespace gantry::sched
