#include "tests/sched/mig/mig_world.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "common/assert.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

}  // namespace

MigGeometry h100_geometry() {
  return {"h100",
          7,
          8,
          {{"7g.80gb", 0, 7, 8, 79 * kGiB, 1, {0}},
           {"4g.40gb", 5, 4, 4, 39 * kGiB, 1, {0}},
           {"3g.40gb", 9, 3, 4, 39 * kGiB, 2, {0, 4}},
           {"2g.20gb", 14, 2, 2, 19 * kGiB, 3, {0, 2, 4}},
           {"1g.20gb", 15, 1, 2, 19 * kGiB, 4, {0, 2, 4, 6}},
           {"1g.10gb", 19, 1, 1, 9 * kGiB, 7, {0, 1, 2, 3, 4, 5, 6}},
           {"1g.10gb+me", 20, 1, 1, 9 * kGiB, 1, {0, 1, 2, 3, 4, 5, 6}}}};
}

MigGeometry a30_geometry() {
  return {"a30",
          4,
          4,
          {{"4g.24gb", 0, 4, 4, 24 * kGiB, 1, {0}},
           {"2g.12gb", 5, 2, 2, 12 * kGiB, 2, {0, 2}},
           {"2g.12gb+me", 6, 2, 2, 12 * kGiB, 1, {0, 2}},
           {"1g.6gb", 14, 1, 1, 6 * kGiB, 4, {0, 1, 2, 3}},
           {"1g.6gb+me", 21, 1, 1, 6 * kGiB, 1, {0, 1, 2, 3}}}};
}

MigTable compiled(const MigGeometry& geometry) {
  auto table = MigTable::compile(geometry);
  GANTRY_ASSERT(table.has_value(), table ? std::string() : table.error().message);
  return std::move(*table);
}

MigWorld::MigWorld(std::uint64_t seed) : MigWorld(seed, Size{}) {}

MigWorld::MigWorld(std::uint64_t seed, Size size) : random(seed) {
  view.now = Instant{hours(1000).us};
  // The tables are compiled once, because compiling takes longer than the rest of a case.
  static const MigTable h100 = compiled(h100_geometry()), a30 = compiled(a30_geometry());
  view.tables = {&h100, &a30};
  for (std::uint32_t n = 0; n < size.nodes; ++n)
    for (std::uint32_t i = 0; i < size.gpus_per_node; ++i) {
      MigGpuView& g = view.gpus.emplace_back();
      g.node = 10 * n;
      g.index = i;
      g.table = n % 3 == 2 ? 1 : 0;
      g.mig = true;
      if (!size.plain) {
        g.mig = chance(80);
        g.healthy = chance(92);
        g.fixed = chance(15);
        g.changing = g.mig && !g.fixed && chance(5);
        if (!g.mig && chance(10)) g.table.reset();
      }
      if (g.mig)
        fill(g);
      else if (chance(50))
        g.whole = MigUse{JobId{next_job_++}, view.now + minutes(1 + static_cast<int>(pick(300)))};
    }
  for (const std::string name : {"7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb",
                                 "1g.10gb+me", "4g.24gb", "2g.12gb", "1g.6gb"})
    view.wants.emplace_back().profile = name;
  view.wants.emplace_back();  // the want for whole GPUs
  view.wants.emplace_back().full_slice = true;
  MigWant& some = view.wants.emplace_back();
  some.profile = "2g.20gb";
  some.nodes = {10, 20};
  add_jobs(size.jobs);
  if (chance(30)) policy.reservations = static_cast<std::uint32_t>(pick(4));
}

// Makes a random layout, with a random part of it in use.
void MigWorld::fill(MigGpuView& gpu) {
  const MigTable& t = table(gpu);
  const unsigned in_use = static_cast<unsigned>(pick(101));
  for (MigState s = 0; t.legal(s) != 0 && chance(85);) {
    std::uint64_t legal = t.legal(s);
    for (std::uint64_t n = pick(static_cast<std::uint64_t>(std::popcount(legal))); n > 0; --n)
      legal &= legal - 1;
    MigSliceView& slice = gpu.slices.emplace_back();
    slice.at = static_cast<MigPlacementId>(std::countr_zero(legal));
    s = t.with(s, slice.at);
    slice.failed = chance(3);
    if (!chance(in_use)) continue;
    slice.use = MigUse{JobId{next_job_++}, std::nullopt};
    if (chance(70)) slice.use->until = view.now + minutes(static_cast<int>(pick(300)));
  }
}

MigJob MigWorld::random_job() {
  MigJob j;
  j.job = JobId{next_job_++};
  j.want = static_cast<std::uint32_t>(pick(view.wants.size()));
  j.count = chance(75) ? 1 : 1 + static_cast<std::uint32_t>(pick(4));
  if (chance(70)) j.limit = minutes(1 + static_cast<int>(pick(300)));
  return j;
}

void MigWorld::add_jobs(std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) view.jobs.push_back(random_job());
}

std::size_t MigWorld::follow(const MigPlan& plan, std::size_t steps) {
  const std::size_t all = steps;
  for (const MigChange& c : plan.changes) {
    if (c.turn != 1 || c.waits) continue;
    auto& slices = view.gpus[c.gpu].slices;
    for (std::size_t i = 0; i < c.destroy.size() && steps > 0; ++i, --steps)
      std::erase_if(slices, [&](const MigSliceView& s) { return s.at == c.destroy[i] && !s.use; });
    for (std::size_t i = 0; i < c.create.size() && steps > 0; ++i, --steps)
      slices.emplace_back().at = c.create[i];
  }
  for (const MigStart& s : plan.starts) {
    const auto job = std::find_if(view.jobs.begin(), view.jobs.end(),
                                  [&](const MigJob& j) { return j.job == s.job; });
    std::vector<std::optional<MigUse>*> uses;
    for (const MigGrant& g : s.grants) {
      MigGpuView& gpu = view.gpus[g.gpu];
      if (!g.at) uses.push_back(&gpu.whole);
      for (MigSliceView& slice : gpu.slices)
        if (g.at && slice.at == *g.at && !slice.use && !slice.failed) uses.push_back(&slice.use);
    }
    if (uses.size() != s.grants.size()) continue;  // the job's turn has not come
    MigUse use{s.job, std::nullopt};
    if (job->limit) use.until = view.now + policy.change * (s.turn > 0 ? 1 : 0) + *job->limit;
    for (std::optional<MigUse>* u : uses) *u = use;
    view.jobs.erase(job);
  }
  view.held = plan.reservations;
  return all - steps;
}

void MigWorld::pass(Duration d) {
  view.now = view.now + d;
  for (MigGpuView& g : view.gpus) {
    g.changing = false;
    const auto over = [&](const std::optional<MigUse>& u) {
      return u && u->until && *u->until <= view.now;
    };
    if (over(g.whole)) g.whole.reset();
    for (MigSliceView& s : g.slices)
      if (over(s.use)) s.use.reset();
  }
}

namespace {

// Checks the slices of a GPU, from the instances alone.
std::string why_illegal(const MigTable& table, const std::vector<MigPlacementId>& layout) {
  std::uint32_t mask = 0, compute = 0, media = 0;
  std::map<std::uint32_t, std::uint32_t> counts;
  for (const MigPlacementId id : layout) {
    const MigPlacement& p = table.placements()[id];
    const MigProfile& profile = table.profiles()[p.profile];
    if ((mask & p.mask) != 0) return "two slices on the same memory";
    mask |= p.mask;
    compute += profile.compute_slices;
    media += profile.name.ends_with("+me") ? 1 : 0;
    if (++counts[p.profile] > profile.max_instances) return "too many of a profile";
  }
  if (compute > table.compute_slices()) return "too many compute slices";
  return media > 1 ? "two with media engines" : "";
}

// Checks a plan against its view, GPU by GPU.
struct Checker {
  const MigWorld& w;
  const MigPlan& plan;
  struct Gpu {
    std::set<MigPlacementId> idle;
    std::vector<MigPlacementId> layout;  // the slices after the changes
    // slices in use or claimed, and until when
    std::vector<std::pair<MigPlacementId, Instant>> used;
    std::vector<std::pair<MigPlacementId, Instant>> reserved;  // reserved places, and from when
    std::uint32_t turn = 0;
    std::set<MigPlacementId> to_create;
    bool whole_free = false;
  };
  std::vector<Gpu> gpus;
  static constexpr Instant kNever{INT64_MAX};

  std::string run() {
    for (const MigGpuView& v : w.view.gpus) {
      Gpu& g = gpus.emplace_back();
      g.whole_free = !v.mig && v.healthy && !v.whole;
      for (const MigSliceView& s : v.slices) {
        g.layout.push_back(s.at);
        if (s.use || s.failed)
          g.used.emplace_back(s.at, s.failed || !s.use->until ? kNever : *s.use->until);
        else
          g.idle.insert(s.at);
      }
    }
    std::string why = changes();
    if (why.empty()) why = starts();
    if (why.empty()) why = reserved();
    if (why.empty() && w.policy.reservations == 0 && w.view.held.empty()) why = nothing_left();
    return why;
  }

  std::string changes() {
    std::map<std::uint32_t, std::uint32_t> turns;
    for (const MigChange& c : plan.changes) {
      const MigGpuView& v = w.view.gpus[c.gpu];
      Gpu& g = gpus[c.gpu];
      if (!v.mig || !v.healthy || v.fixed) return "a change where none may be";
      if (c.destroy.empty() && c.create.empty()) return "a change of nothing";
      if (c.turn != ++turns[v.node]) return "turns of a node are not 1, 2, 3";
      g.turn = c.turn;
      for (const MigPlacementId p : c.destroy) {
        if (g.idle.erase(p) == 0) return "destroys what is not idle";
        std::erase(g.layout, p);
      }
      for (const MigPlacementId p : c.create) {
        g.layout.push_back(p);
        g.to_create.insert(p);
        if (const std::string why = why_illegal(w.table(v), g.layout); !why.empty()) return why;
      }
    }
    return "";
  }

  std::string starts() {
    std::map<JobId, const MigJob*> jobs;
    for (const MigJob& j : w.view.jobs) jobs[j.job] = &j;
    for (const MigStart& s : plan.starts) {
      if (!jobs.contains(s.job)) return "starts who does not wait";
      const MigJob& job = *jobs[s.job];
      jobs.erase(s.job);
      if (s.grants.size() != job.count) return "another count";
      std::uint32_t turn = 0;
      for (const MigGrant& grant : s.grants) {
        if (w.view.gpus[grant.gpu].node != w.view.gpus[s.grants[0].gpu].node) return "two nodes";
        if (const std::string why = grant_of(job, grant, s.turn, turn); !why.empty()) return why;
      }
      if (turn != s.turn) return "another turn";
    }
    for (const Gpu& g : gpus)
      if (!g.to_create.empty()) return "creates what nobody gets";
    return "";
  }

  std::string grant_of(const MigJob& job, const MigGrant& grant, std::uint32_t job_turn,
                       std::uint32_t& turn) {
    const MigWant& want = w.view.wants[job.want];
    const MigGpuView& v = w.view.gpus[grant.gpu];
    Gpu& g = gpus[grant.gpu];
    if (!v.healthy) return "on a GPU that has failed";
    if (!want.nodes.empty() &&
        std::find(want.nodes.begin(), want.nodes.end(), v.node) == want.nodes.end())
      return "a node that it may not use";
    if (!grant.at) {
      if (!want.profile.empty() || !g.whole_free) return "a whole GPU that cannot be had";
      g.whole_free = false;
      return "";
    }
    if (!v.mig) return "a slice without MIG";
    const MigProfile& p = w.table(v).profiles()[w.table(v).placements()[*grant.at].profile];
    const bool full = p.compute_slices == w.table(v).compute_slices();
    if (want.profile.empty() ? !(want.full_slice && full && job.count == 1)
                             : p.name != want.profile)
      return "another profile";
    if (grant.exists ? g.idle.erase(*grant.at) == 0 : g.to_create.erase(*grant.at) == 0)
      return "a slice that it cannot have";
    if (!grant.exists) turn = std::max(turn, g.turn);
    const bool waits = std::any_of(w.view.gpus.begin(), w.view.gpus.end(),
                                   [&](const auto& o) { return o.node == v.node && o.changing; });
    const int changes = job_turn == 0 ? 0 : static_cast<int>(job_turn) + (waits ? 1 : 0);
    g.used.emplace_back(*grant.at,
                        job.limit ? w.view.now + w.policy.change * changes + *job.limit : kNever);
    return "";
  }

  // Checks that each reservation has its place at its time, beside the jobs that still run and
  // earlier reservations.
  std::string reserved() {
    if (plan.reservations.size() > w.policy.reservations + w.view.held.size()) return "too many";
    for (const MigReservation& r : plan.reservations)
      for (const MigGrant& g : r.grants) {
        for (const MigStart& s : plan.starts)
          if (s.job == r.job) return "starts and is reserved for";
        if (g.at) gpus[g.gpu].reserved.emplace_back(*g.at, r.at.value_or(kNever));
      }
    for (std::size_t i = 0; i < gpus.size(); ++i)
      for (const auto& [place, from] : gpus[i].reserved) {
        if (from <= w.view.now) continue;  // a job beyond its limit counts as in use
        std::vector<MigPlacementId> then;
        for (const auto& [at, until] : gpus[i].used)
          if (from != kNever && until > from) then.push_back(at);
        for (const auto& [at, other] : gpus[i].reserved)
          if (other <= from) then.push_back(at);
        const std::string why = why_illegal(w.table(w.view.gpus[i]), then);
        if (!why.empty()) return "reserved: " + why;
      }
    return "";
  }

  // Checks that, without reservations, no waiting job could start.
  std::string nothing_left() {
    std::set<JobId> started;
    for (const MigStart& s : plan.starts) started.insert(s.job);
    for (const MigJob& job : w.view.jobs) {
      const MigWant& want = w.view.wants[job.want];
      if (started.contains(job.job)) continue;
      // (node, table) -> room
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> room;
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        const MigGpuView& v = w.view.gpus[i];
        if (!want.nodes.empty() &&
            std::find(want.nodes.begin(), want.nodes.end(), v.node) == want.nodes.end())
          continue;
        if (want.profile.empty()) room[{v.node, 9}] += gpus[i].whole_free ? 1 : 0;
        if (!v.mig || !v.healthy || want.profile.empty()) continue;
        if (const auto p = w.table(v).profile_named(want.profile))
          room[{v.node, *v.table}] += room_on(v, gpus[i], *p);
      }
      for (const auto& [where, n] : room)
        if (n >= job.count) return fmt::format("job {} waits and could start", job.job.value());
    }
    return "";
  }

  std::uint32_t room_on(const MigGpuView& v, const Gpu& g, std::uint32_t profile) const {
    const MigTable& t = w.table(v);
    std::uint32_t n = 0;
    if (v.fixed) {
      for (const MigPlacementId p : g.idle) n += t.placements()[p].profile == profile ? 1 : 0;
      return n;
    }
    std::vector<MigPlacementId> used;
    for (const auto& [at, until] : g.used) used.push_back(at);
    return t.fits(t.state_of(used), profile);
  }
};

}  // namespace

std::string MigWorld::check_layouts() const {
  for (const MigGpuView& g : view.gpus) {
    if (!g.table) continue;
    std::vector<MigPlacementId> layout;
    for (const MigSliceView& s : g.slices) layout.push_back(s.at);
    if (const std::string why = why_illegal(table(g), layout); !why.empty()) return why;
  }
  return "";
}

std::string MigWorld::check(const MigPlan& plan) const {
  return Checker{*this, plan, {}}.run();
}

std::string print(const MigPlan& plan) {
  const auto grants = [](const std::vector<MigGrant>& all) {
    std::string text;
    for (const MigGrant& g : all)
      text += fmt::format(" {}:{}{}", g.gpu, g.at ? std::to_string(*g.at) : "whole",
                          g.exists ? "" : "+");
    return text;
  };
  std::string text;
  for (const MigStart& s : plan.starts)
    text += fmt::format("start {}:{} turn {}\n", s.job.value(), grants(s.grants), s.turn);
  for (const MigChange& c : plan.changes) {
    text += fmt::format("change {} turn {}{}:", c.gpu, c.turn, c.waits ? " waits" : "");
    for (const auto p : c.destroy) text += fmt::format(" -{}", p);
    for (const auto p : c.create) text += fmt::format(" +{}", p);
    text += "\n";
  }
  for (const MigReservation& r : plan.reservations)
    text += fmt::format("reserve {}:{} at {}\n", r.job.value(), grants(r.grants),
                        r.at ? std::to_string(r.at->us) : "?");
  for (const MigModeSwitch& s : plan.switches)
    text += fmt::format("mode {} {}\n", s.gpu, s.on ? "on" : "off");
  for (const MigWaiting& v : plan.waiting)
    text += fmt::format("want {}: {} wait, {} {}\n", v.want, v.jobs, v.first.value(),
                        static_cast<int>(v.why));
  return text;
}

}  // namespace gantry::sched
