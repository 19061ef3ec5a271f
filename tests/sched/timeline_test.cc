// Compares the timeline with a count second by second: the least free resources over a span, and
// the earliest start. GANTRY_LONG=1 tries 10,000 random nodes and plans, otherwise 300.
#include "ctld/sched/time/timeline.h"
#include "ctld/sched/nodes/devices.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/sched/cases.h"

namespace gantry::sched {
namespace {

constexpr Instant kNow{seconds(1'000).us};
constexpr std::int64_t kHorizon = 500;  // seconds from now; every end except "never" is before this

struct Span {  // a span during which something holds resources of a node
  std::uint32_t node = 0;
  Instant from, until;
  Room room;
  bool reserved = false;
};

// A small cluster in one plan: running jobs, started jobs, reservations, windows; and all of it
// once more as a list.
class Outlook {
 public:
  explicit Outlook(std::uint64_t seed) : random_(seed) {
    const std::uint64_t nodes = 2 + pick(3);
    for (std::uint32_t n = 0; n < nodes; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = "n" + std::to_string(n);
      node.available = true;
      node.gpus = static_cast<std::uint32_t>(pick(3));
      node.memory = 16;
      for (std::uint16_t c = 0; c < 4 + 4 * pick(2); ++c) node.cpus.push_back(c);
      grid.change(node);
    }
    allowed_.resize(grid.size());
    for (std::uint32_t n = 0; n < nodes; ++n) allowed_.set(n);
    for (std::uint64_t i = pick(10); i > 0; --i) run_one();
    make_windows();
    timeline.begin(kNow);
    for (std::uint64_t i = pick(9); i > 0; --i) chance(60) ? promise_one() : start_one();
    if (chance(20)) lift_one();
    count();
  }

  // Returns "" or the difference.
  std::string compare_room() {
    const auto n = static_cast<std::uint32_t>(pick(grid.size()));
    const JobClass cls = random_class();
    const Instant from = kNow + seconds(static_cast<std::int64_t>(pick(80)));
    const Instant until = Timeline::end_of(from, cls.key.time_limit);
    speak();
    const Room room = timeline.room_at(n, from);
    if (room != at(rooms_, n, from)) return "room_at";
    const std::uint32_t fits = timeline.fits(n, cls.demand, from, until, room);
    if (fits != counted(n, cls.demand, from, until)) return "fits";
    if (timeline.holds(n, cls.demand, from, until, room, 2) != (fits >= 2)) return "holds";
    fitted += fits > 0 ? 1 : 0;
    return "";
  }

  std::string compare_start() {
    const JobClass cls = random_class();
    speak();
    if (enough(cls, kNow)) return "";  // the class could start now, which is another question
    const Instant from = kNow + seconds(chance(50) ? 0 : static_cast<std::int64_t>(pick(60)));
    std::uint64_t steps = 0;
    const auto slot = timeline.earliest(cls, allowed_, from, steps);
    Instant t = std::max(from, kNow + seconds(1));
    while (t <= kNow + seconds(kHorizon) && !enough(cls, t)) t = t + seconds(1);
    const bool ever = t <= kNow + seconds(kHorizon);
    if (slot.has_value() != ever) return ever ? "a start was not found" : "a start that is none";
    if (!slot) return "";
    ++found;
    if (slot->start != t) return "not the earliest";
    for (const Share& s : slot->shares)
      if (counted(s.node, cls.demand, t, Timeline::end_of(t, cls.key.time_limit)) < s.tasks)
        return "no room on a node";
    return "";
  }

  Grid grid;
  Running running;
  Windows windows;
  Timeline timeline{grid, running, windows};
  std::size_t fitted = 0, found = 0;

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t percent) { return pick(100) < percent; }

  JobClass random_class() {
    JobClass cls;
    JobShape& s = cls.key.shape;
    s.cpus_per_task = static_cast<std::uint32_t>(1 + pick(3));
    s.memory_per_node = static_cast<std::int64_t>(1 + pick(9));
    if (chance(30)) s.gpus_per_node = static_cast<std::uint32_t>(1 + pick(2));
    if (chance(30)) s.min_nodes = s.max_nodes = s.tasks = 2;
    if (chance(20) && s.min_nodes == 1) s.tasks = 2;
    s.exclusive = chance(10);
    if (chance(85)) cls.key.time_limit = seconds(static_cast<std::int64_t>(5 + pick(40)));
    cls.demand = demand_of(s, PartitionChanged{});
    return cls;
  }

  void hold(std::uint32_t n, Instant from, std::optional<Instant> until, const Room& room,
            bool reserved) {
    spans_.push_back({n, from, until.value_or(Timeline::kNever), room, reserved});
  }

  void run_one() {
    JobPlaced job;
    job.job = JobId{next_job_++};
    const auto n = static_cast<std::uint32_t>(pick(grid.size()));
    NodeGrant grant;
    grant.node = NodeId{n};
    grant.cpus = choose_cpus(grid.node(n),
                             std::min(grid.free(n).cpus, static_cast<std::int32_t>(1 + pick(4))));
    grant.memory = std::min<std::int64_t>(grid.free(n).memory, 3);
    if (grid.free(n).gpus > 0 && chance(40)) grant.gpus = 1;
    if (grant.cpus.empty()) return;
    job.grants = {grant};
    // Some jobs are past their limit and about to end.
    if (chance(85)) job.ends_by = kNow + seconds(static_cast<std::int64_t>(pick(60)) - 5);
    running.place(job, grid);
    const Room room{grant.memory, 0, static_cast<std::int32_t>(grant.cpus.size()),
                    static_cast<std::int32_t>(grant.gpus)};
    if (job.ends_by && *job.ends_by <= kNow) job.ends_by = kNow + Timeline::kOverdue;
    hold(n, kNow, job.ends_by, room, false);
  }

  void make_windows() {
    for (const char* name : {"course", "upgrade"}) {
      if (!chance(30)) continue;
      ReservationChanged r;
      r.name = name;
      r.from = kNow + seconds(static_cast<std::int64_t>(pick(60)));
      r.until = r.from + seconds(static_cast<std::int64_t>(1 + pick(40)));
      r.nodes = {NodeId{static_cast<std::uint32_t>(pick(grid.size()))}};
      const Duration period = r.until - r.from + seconds(static_cast<std::int64_t>(pick(30)));
      for (std::int64_t again = 1; again <= 3 && chance(60); ++again)  // the window recurs
        r.later.push_back({r.from + period * again, r.until + period * again});
      windows_[name] = r;
    }
    windows.set(windows_);
  }

  void speak() {
    own_ = windows_.empty() || !chance(20) ? "" : windows_.begin()->first;
    REQUIRE(windows.speak_for(own_));
  }

  void start_one() {
    const JobClass cls = random_class();
    if (cls.demand.min_nodes > 1) return;
    windows.speak_for("");
    for (std::uint32_t n = 0; n < grid.size(); ++n) {
      const Instant until = Timeline::end_of(kNow, cls.key.time_limit);
      if (timeline.fits(n, cls.demand, kNow, until, grid.free(n)) < cls.demand.tasks) continue;
      const Room need = need_for(cls.demand, grid.room(n), cls.demand.tasks);
      const auto cpus = choose_cpus(grid.node(n), need.cpus);
      const auto devices = choose_devices(grid.node(n), need.gpus);
      grid.take(n, need, {cpus, devices, {}, {}});
      std::optional<Instant> ends;
      if (cls.key.time_limit) ends = until;
      timeline.started(cls.demand, {{n, cls.demand.tasks}}, ends);
      hold(n, kNow, ends, need, false);
      return;
    }
  }

  void promise_one() {
    const JobClass cls = random_class();
    windows.speak_for("");
    std::uint64_t steps = 0;
    const auto slot = timeline.earliest(cls, allowed_, kNow, steps);
    if (!slot) return;
    const JobId job{next_job_++};
    timeline.reserve(cls, *slot, job);
    promised_.push_back({job, slot->start, slot->shares, spans_.size()});
    for (const Share& s : slot->shares)
      hold(s.node, slot->start, Timeline::end_of(slot->start, cls.key.time_limit),
           need_for(cls.demand, grid.room(s.node), s.tasks), true);
  }

  void lift_one() {
    if (promised_.empty()) return;
    const Promised p = promised_[pick(promised_.size())];
    timeline.lift(p.job, p.start, p.shares);
    for (std::size_t i = 0; i < p.shares.size(); ++i) spans_[p.first_span + i].room = {};
  }

  // ---- counting second by second

  using Seconds = std::vector<std::vector<Room>>;  // indexed by node

  void count() {
    for (std::uint32_t n = 0; n < grid.size(); ++n) {
      rooms_.emplace_back(kHorizon + 1, grid.room(n));
      spare_.emplace_back(kHorizon + 1, grid.room(n));
    }
    for (const Span& s : spans_)
      for (std::int64_t i = 0; i <= kHorizon; ++i) {
        const Instant t = kNow + seconds(i);
        if (t < s.from || t >= s.until) continue;
        const auto second = static_cast<std::size_t>(i);
        spare_[s.node][second] -= s.room;
        if (!s.reserved) rooms_[s.node][second] -= s.room;
      }
  }

  static const Room& at(const Seconds& of, std::uint32_t n, Instant t) {
    return of[n][static_cast<std::size_t>((t - kNow).us / 1'000'000)];
  }

  std::uint32_t counted(std::uint32_t n, const Demand& demand, Instant from, Instant until) const {
    for (const auto& [name, w] : windows_) {
      if (name == own_ && (from < w.from || until > w.until)) return 0;
      if (name != own_ && w.nodes[0].value() == n && w.from < until && from < w.until) return 0;
      for (const TimeSpan& again : w.later)
        if (w.nodes[0].value() == n && again.from < until && from < again.until) return 0;
    }
    std::uint32_t least = ~std::uint32_t{0};
    for (Instant t = from; t < until && t <= kNow + seconds(kHorizon); t = t + seconds(1))
      least = std::min(least, tasks_fitting(demand, grid.room(n), at(spare_, n, t)));
    return least;
  }

  bool enough(const JobClass& cls, Instant t) const {
    const Demand& d = cls.demand;
    std::uint32_t nodes = 0;
    for (std::uint32_t n = 0; n < grid.size(); ++n) {
      const std::uint32_t fits = counted(n, d, t, Timeline::end_of(t, cls.key.time_limit));
      if (d.min_nodes == 1 ? fits >= d.tasks : fits >= 1) ++nodes;
    }
    return nodes >= d.min_nodes;
  }

  struct Promised {
    JobId job;
    Instant start;
    std::vector<Share> shares;
    std::size_t first_span = 0;
  };

  std::mt19937_64 random_;
  std::uint64_t next_job_ = 1;
  Bits allowed_;
  std::vector<Span> spans_;
  std::vector<Promised> promised_;
  std::map<std::string, ReservationChanged> windows_;
  std::string own_;
  Seconds rooms_, spare_;  // free resources without reservations, and with them
};

TEST_CASE("the least room over a span and the earliest start equal a count second by second") {
  std::size_t fitted = 0, found = 0;
  for (int i = 1; i <= cases(300); ++i) {
    CAPTURE(i);
    Outlook ahead(static_cast<std::uint64_t>(i));
    for (int question = 0; question < 8; ++question) REQUIRE(ahead.compare_room() == "");
    for (int question = 0; question < 3; ++question) REQUIRE(ahead.compare_start() == "");
    fitted += ahead.fitted;
    found += ahead.found;
  }
  CHECK(fitted > 500);
  CHECK(found > 150);
}

}  // namespace
}  // namespace gantry::sched
