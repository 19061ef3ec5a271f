#include "ctld/sched/time/walk.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "ctld/sched/nodes/neighbours.h"
#include "ctld/sched/nodes/topology.h"
#include "ctld/sched/time/timeline.h"

namespace gantry::sched {
namespace {

using Note = WalkNotes::Note;

// The moments at which resources become free: the ends of running jobs, of jobs that this plan
// starts, of its reservations, and of windows; and moments after which a reservation is too near
// for a start.
class EndsAhead {
 public:
  EndsAhead(const WalkInput& in, bool one_by_one) : in_(in), one_by_one_(one_by_one) {
    const Instant now = in.timeline.now();
    overdue_ = in.running.ends().begin();
    running_ = first_running_ = in.running.first_ending_after(now);
    overdue_done_ = overdue_ == running_;
    while (window_ < in.windows.all().size() && in.windows.all()[window_].until <= now) ++window_;
  }

  // The next moment at which something is released; nullopt if there is none.
  [[nodiscard]] std::optional<Instant> next_time() const {
    std::optional<Instant> next;
    const auto offer = [&](Instant at) { next = next ? std::min(*next, at) : at; };
    const OrderedSlots& ends = in_.running.ends();
    if (!overdue_done_) offer(in_.timeline.now() + Timeline::kOverdue);
    if (!ends.at_end(running_)) offer(in_.running.end_of(ends[running_]).at);
    if (freed_ < in_.freed.size()) offer(in_.freed[freed_].at);
    if (window_ < in_.windows.all().size()) offer(in_.windows.all()[window_].until);
    return next;
  }

  // Notes that from then on the node may hold less than now.
  void expires(Instant at, std::uint32_t node) { expiring_.push({at, node}); }

  // Calls back(node, room) for what ends by `at`: all of it, or (one by one) only until some() is
  // true; then next_time() stays the same for the rest.
  template <class Back, class Some>
  void advance(Instant at, bool skipping, Back&& back, Some&& some) {
    const OrderedSlots& ends = in_.running.ends();
    const auto enough = [&] { return one_by_one_ && !skipping && some(); };
    if (!overdue_done_ && at >= in_.timeline.now() + Timeline::kOverdue) {
      for (; overdue_ != first_running_ && !enough(); overdue_ = ends.next(overdue_))
        release(ends[overdue_], back);
      overdue_done_ = overdue_ == first_running_;
    }
    for (; !ends.at_end(running_) && !enough(); running_ = ends.next(running_)) {
      const std::uint32_t slot = ends[running_];
      if (in_.running.end_of(slot).at > at) break;
      fetch_soon(ends);
      release(slot, back);
    }
    for (; freed_ < in_.freed.size() && in_.freed[freed_].at <= at && !enough(); ++freed_)
      back(in_.freed[freed_].node, in_.freed[freed_].room);
    const auto windows = in_.windows.all();
    for (; window_ < windows.size() && windows[window_].until <= at; ++window_)
      for (const std::uint32_t n : windows[window_].nodes) back(n, Room{});
    for (; !expiring_.empty() && expiring_.top().first < at; expiring_.pop())
      back(expiring_.top().second, Room{});
  }

 private:
  // Prefetches, because a walk along thousands of ends mostly waits for memory.
  void fetch_soon(const OrderedSlots& ends) {
    __builtin_prefetch(&in_.running.end_of(ends.soon(running_, 16)));
    const End& end = in_.running.end_of(ends.soon(running_, 8));
    __builtin_prefetch(&in_.notes.notes[end.node]);
  }
  template <class Back>
  void release(std::uint32_t slot, Back& back) {
    const End& end = in_.running.end_of(slot);
    if (end.nodes == 1) return back(end.node, end.room);
    for (const Use& use : in_.running[slot].uses) back(use.node, use.room);
  }

  const WalkInput& in_;
  const bool one_by_one_;
  OrderedSlots::Cursor overdue_, first_running_, running_;
  bool overdue_done_ = false;
  std::size_t freed_ = 0;
  std::size_t window_ = 0;
  using Expiry = std::pair<Instant, std::uint32_t>;
  std::priority_queue<Expiry, std::vector<Expiry>, std::greater<>> expiring_;
};

// Counts how many tasks fit on how many nodes, for jobs of several nodes.
class FitCount {
 public:
  FitCount(const Grid& grid, const JobClass& cls) : grid_(grid), d_(cls.demand) {
    if (cls.key.shape.topology == TopologyWish::required)
      level_ = grid.levels().find(cls.key.shape.topology_level).value_or(0);
  }

  void change(std::uint32_t node, std::uint32_t was, std::uint32_t fits) {
    tasks_ += fits;
    tasks_ -= was;
    if (by_fit_.size() <= std::max(fits, was)) by_fit_.resize(std::max(fits, was) + 1, 0);
    if (was > 0) --by_fit_[was];
    if (fits > 0) ++by_fit_[fits];
    nodes_ += (fits > 0 ? 1 : 0) - (was > 0 ? 1 : 0);
    if (!level_) return;
    Sum& in_domain = domains_[grid_.levels().domain(*level_, node)];
    in_domain.nodes += (fits > 0 ? 1 : 0) - (was > 0 ? 1 : 0);
    in_domain.tasks += fits;
    in_domain.tasks -= was;
  }

  // True if the job could fit on the nodes with the most free resources. If one domain must hold
  // all of it, only a domain with a changed node can have become sufficient.
  [[nodiscard]] bool possible(std::span<const std::uint32_t> changed) const {
    if (nodes_ < d_.min_nodes || tasks_ < d_.tasks) return false;
    std::uint64_t nodes = 0, tasks = 0;
    for (std::size_t f = by_fit_.size(); f-- > 1 && nodes < d_.max_nodes;) {
      const std::uint64_t taken = std::min<std::uint64_t>(by_fit_[f], d_.max_nodes - nodes);
      nodes += taken;
      tasks += taken * f;
    }
    if (tasks < d_.tasks) return false;
    return !level_ || std::any_of(changed.begin(), changed.end(), [&](std::uint32_t n) {
      const auto it = domains_.find(grid_.levels().domain(*level_, n));
      return it != domains_.end() && it->second.nodes >= d_.min_nodes &&
             it->second.tasks >= d_.tasks;
    });
  }

 private:
  struct Sum {
    std::uint64_t nodes = 0, tasks = 0;
  };
  const Grid& grid_;
  const Demand& d_;
  std::vector<std::uint32_t> by_fit_;  // nodes by the number of tasks that fit
  std::uint64_t nodes_ = 0, tasks_ = 0;
  std::optional<std::uint32_t> level_;  // topology level, if one domain must hold the whole job
  std::unordered_map<std::uint32_t, Sum> domains_;  // by domain of that level
};

class Walk {
 public:
  Walk(const WalkInput& in, const JobClass& cls, const Bits& allowed)
      : in_(in),
        t_(in.timeline),
        cls_(cls),
        d_(cls.demand),
        allowed_(allowed),
        single_(d_.min_nodes == 1 && d_.max_nodes == 1),
        stamp_(++in.notes.stamp),
        ends_(in, single_),
        fits_(in.grid, cls) {}

  std::optional<Slot> run(Instant from, Instant before, std::uint64_t& steps) {
    if (from > t_.now()) {
      skip_to(from);
      steps += dirty_.size();
      if (auto found = single_ ? try_one_node(from) : try_nodes(from)) return found;
    } else if (!single_) {
      note_all();
    }
    while (const auto at = ends_.next_time()) {
      if (*at >= before) break;
      dirty_.clear();
      ++moment_;
      advance(*at, false);
      steps += dirty_.size();
      auto found = single_ ? try_one_node(*at) : try_nodes(*at);
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  Note& note(std::uint32_t n) {
    Note& note = in_.notes.notes[n];
    if (note.stamp != stamp_) note = {stamp_, 0, 0, in_.grid.free(n)};
    return note;
  }
  [[nodiscard]] bool usable(std::uint32_t n) const {
    return allowed_.test(n) && in_.grid.available(n);
  }
  [[nodiscard]] Instant until(Instant start) const {
    return Timeline::end_of(start, cls_.key.least_limit());
  }

  // `skipping`: the walk goes to a time, without stopping where a node becomes free before.
  void advance(Instant at, bool skipping) {
    ends_.advance(
        at, skipping, [this](std::uint32_t n, const Room& room) { give_back(n, room); },
        [this] { return !dirty_.empty(); });
  }
  // Releases everything that ends by then; afterwards each node is examined.
  void skip_to(Instant from) {
    ++moment_;
    advance(from, true);
    dirty_.clear();
    ++moment_;
    for (std::size_t w = 0; w < allowed_.words(); ++w)
      any_in_word(allowed_.word(w), w, [&](std::uint32_t n) {
        give_back(n, {});
        return false;
      });
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
    // The order of place.h: the fewest GPUs left idle, then the fewest cores.
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

  // The user of the job is not known here, so the job counts as one without a user.
  std::optional<Neighbours> neighbours_at(Instant at) const {
    if (Neighbours::none(in_.running, cls_)) return std::nullopt;
    return std::optional<Neighbours>(std::in_place, in_.running, in_.grid, cls_, kNoShare, at);
  }

  void note_all() {
    for (std::size_t w = 0; w < allowed_.words(); ++w)
      any_in_word(allowed_.word(w), w, [&](std::uint32_t n) {
        if (in_.grid.available(n)) count(n, t_.now());
        return false;
      });
  }

  // Counts, or counts again, what fits on a node for a start at `at`.
  void count(std::uint32_t n, Instant at) {
    Note& node = note(n);
    const std::uint32_t fits = t_.fits(n, d_, at, until(at), node.room);
    if (const auto same = t_.same_until(n, at, until(at))) ends_.expires(*same, n);
    if (fits == node.fits) return;
    fits_.change(n, node.fits, fits);
    node.fits = fits;
  }

  [[nodiscard]] bool possible() const {
    return fits_.possible(dirty_) &&
           std::all_of(cls_.required.begin(), cls_.required.end(), [&](std::uint32_t n) {
             const Note& node = in_.notes.notes[n];
             return node.stamp == stamp_ && node.fits > 0;
           });
  }

  std::optional<Slot> try_nodes(Instant at) {
    for (const std::uint32_t n : dirty_) count(n, at);
    if (!possible()) return std::nullopt;
    // Nodes that are in use now come first: free nodes can be used by jobs that start earlier.
    struct Ranked {
      bool free_now;
      std::int32_t cpus;
      Candidate candidate;
    };
    std::vector<Ranked> ranked;
    const auto neighbours = neighbours_at(at);
    for (std::size_t w = 0; w < allowed_.words(); ++w)
      any_in_word(allowed_.word(w), w, [&](std::uint32_t n) {
        const Note& node = in_.notes.notes[n];
        if (node.stamp != stamp_ || node.fits == 0) return false;
        if (neighbours && !neighbours->allows(n)) return false;
        const bool required = std::binary_search(cls_.required.begin(), cls_.required.end(), n);
        ranked.push_back({node.room == in_.grid.free(n), node.room.cpus, {n, node.fits, required}});
        return false;
      });
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
      return std::pair{a.free_now, a.cpus} < std::pair{b.free_now, b.cpus};
    });
    std::vector<Candidate> candidates;
    for (const Ranked& r : ranked) candidates.push_back(r.candidate);
    if (neighbours) neighbours->trim(candidates);
    auto shares = choose_places(in_.grid, cls_, candidates);
    if (!shares) return std::nullopt;
    Slot slot{at, std::move(*shares), {}};
    for (const Share& s : slot.shares) slot.room.push_back(note(s.node).room);
    return slot;
  }

  const WalkInput& in_;
  const Timeline& t_;
  const JobClass& cls_;
  const Demand& d_;
  const Bits& allowed_;
  const bool single_;
  const std::uint32_t stamp_;
  EndsAhead ends_;
  FitCount fits_;             // only for jobs on several nodes
  std::uint32_t moment_ = 0;  // the number of the moment in the walk
  std::vector<std::uint32_t> dirty_;
};

}  // namespace

std::optional<Slot> walk_ends(const WalkInput& input, const JobClass& cls, const Bits& allowed,
                              Instant from, Instant before, std::uint64_t& steps) {
  return Walk(input, cls, allowed).run(from, before, steps);
}

}  // namespace gantry::sched
