#include "tests/sched/mig/mig_demand.h"

#include <algorithm>
#include <bit>
#include <map>
#include <queue>

#include "common/assert.h"
#include "ctld/sched/gpu/mig_place.h"
#include "ctld/sched/gpu/mig_plan.h"
#include "tests/sched/mig/mig_arrivals.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched {
namespace {

std::vector<std::uint32_t> weights(const DemandSetup& setup) {
  std::vector<std::uint32_t> w;
  for (const double m : setup.mix) w.push_back(static_cast<std::uint32_t>(m * 1000));
  return w;
}

// ---- without re-partitioning

struct Places {
  struct End {
    Instant at;
    std::uint32_t gpu = 0;
    MigPlacementId place = 0;
    bool operator>(const End& o) const {
      return std::tie(at, gpu, place) > std::tie(o.at, o.gpu, o.place);
    }
  };
  const MigTable& table;
  MigOrder order;
  std::vector<MigState> state;
  MigPool pool;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;

  Places(const MigTable& t, const DemandSetup& setup)
      : table(t),
        order(t, weights(setup)),
        state(std::size_t{setup.nodes} * setup.gpus_per_node, 0),
        pool(order, state.size()) {
    for (std::uint32_t g = 0; g < state.size(); ++g) pool.put(g, 0);
  }
  void end_until(Instant now) {
    for (; !ends.empty() && ends.top().at <= now; ends.pop()) {
      const End& e = ends.top();
      state[e.gpu] = table.without(state[e.gpu], e.place);
      pool.put(e.gpu, state[e.gpu]);
    }
  }
  std::optional<std::uint32_t> choose(DemandMode mode, std::uint32_t profile) const {
    std::optional<std::uint32_t> best;
    if (mode == DemandMode::fullest) {
      pool.any(profile, nullptr, [&](std::uint32_t g) {
        best = g;
        return true;
      });
      return best;
    }
    for (std::uint32_t g = 0; g < state.size(); ++g) {
      if (table.fits(state[g], profile) == 0) continue;
      if (mode == DemandMode::first_fit) return g;
      if (!best || table.memory_used(state[g]) < table.memory_used(state[*best])) best = g;
    }
    return best;
  }
  bool place(DemandMode mode, const Arrivals::Job& job) {
    const auto gpu = choose(mode, job.profile);
    if (!gpu) return false;
    MigPlacementId at = *order.start(state[*gpu], table.placements_of(job.profile), 0);
    if (mode != DemandMode::fullest)
      at = static_cast<MigPlacementId>(std::countr_zero(table.legal(state[*gpu], job.profile)));
    state[*gpu] = table.with(state[*gpu], at);
    pool.put(*gpu, state[*gpu]);
    ends.push({job.at + job.run, *gpu, at});
    return true;
  }
};

DemandResult without(DemandMode mode, const DemandSetup& setup, const MigTable& table) {
  Arrivals arrivals(table, setup);
  Count count(table, setup);
  Places places(table, setup);
  Instant first{}, now{};
  for (std::uint32_t i = 0; i < setup.jobs + setup.jobs / 10; ++i) {
    const Arrivals::Job job = arrivals.next();
    now = job.at;
    if (i == setup.jobs / 10) first = now;
    places.end_until(now);
    count.asked(job);
    if (places.place(mode, job))
      count.started(job, {});
    else
      count.refused(job);
  }
  return count.result(static_cast<double>((now - first).us) * 1e-6);
}

// ---- with re-partitioning

class Cluster {
 public:
  Cluster(const MigTable& table, const DemandSetup& setup)
      : table_(table), setup_(setup), arrivals_(table, setup), count_(table, setup) {
    view_.tables = {&table};
    for (std::uint32_t n = 0; n < setup.nodes; ++n)
      for (std::uint32_t i = 0; i < setup.gpus_per_node; ++i) {
        MigGpuView& g = view_.gpus.emplace_back();
        g.node = n;
        g.index = i;
        g.table = 0;
        g.mig = true;
      }
    for (const MigProfile& p : table.profiles()) view_.wants.emplace_back().profile = p.name;
    view_.asked = {weights(setup)};
  }

  DemandResult run() {
    Instant first{};
    for (std::uint32_t i = 0; i < setup_.jobs + setup_.jobs / 10; ++i) {
      const Arrivals::Job job = arrivals_.next();
      if (i == setup_.jobs / 10) first = job.at;
      events_until(job.at);
      count_.asked(job);
      waiting_.emplace(job.id, job);
      if (setup_.patience > Duration{}) push({job.at + setup_.patience, What::patience, job.id, 0});
      plan();
      if (setup_.patience == Duration{}) refuse(job.id);
    }
    const Instant last = view_.now;
    events_until(last + setup_.patience + seconds(1));
    DemandResult r = count_.result(static_cast<double>((last - first).us) * 1e-6);
    r.changes = changes_;
    r.started_at_once = at_once_;
    return r;
  }

 private:
  enum class What : std::uint8_t { end, changed, patience };
  struct Event {
    Instant at;
    What what{};
    JobId job;
    std::uint32_t gpu = 0;
    bool operator>(const Event& o) const {
      return std::tie(at, what, job, gpu) > std::tie(o.at, o.what, o.job, o.gpu);
    }
  };
  void push(Event e) { events_.push(e); }

  void events_until(Instant t) {
    while (!events_.empty() && events_.top().at <= t) {
      const Event e = events_.top();
      events_.pop();
      view_.now = e.at;
      MigGpuView& gpu = view_.gpus[e.gpu];
      if (e.what == What::patience) {
        refuse(e.job);
        continue;
      }
      if (e.what == What::changed)
        gpu.changing = false;
      else
        for (MigSliceView& s : gpu.slices)
          if (s.use && s.use->job == e.job) s.use.reset();
      if (!waiting_.empty()) plan();
    }
    view_.now = t;
  }

  void refuse(JobId job) {
    const auto at = waiting_.find(job);
    if (at == waiting_.end()) return;
    count_.refused(at->second);
    waiting_.erase(at);
  }

  void plan() {
    view_.jobs.clear();
    for (const auto& [id, job] : waiting_) {
      MigJob& j = view_.jobs.emplace_back(MigJob{id, job.profile, 1, job.limit});
      if (setup_.ends == KnownEnds::none) j.limit.reset();
    }
    MigPlan plan = plan_mig(view_, policy_);
    for (const MigChange& c : plan.changes)
      if (c.turn == 1 && !c.waits) change(c);
    for (const MigStart& s : plan.starts) start(s);
    view_.held = std::move(plan.reservations);
  }

  void change(const MigChange& c) {
    MigGpuView& gpu = view_.gpus[c.gpu];
    for (const MigPlacementId p : c.destroy)
      GANTRY_ASSERT(std::erase_if(gpu.slices,
                                  [&](const MigSliceView& s) { return s.at == p && !s.use; }) == 1,
                    "what is destroyed is there and idle");
    for (const MigPlacementId p : c.create) gpu.slices.emplace_back().at = p;
    gpu.changing = true;
    ++changes_;
    push({view_.now + policy_.change, What::changed, {}, c.gpu});
  }

  // A start of a later turn has no slice yet and waits for a later plan.
  void start(const MigStart& s) {
    const MigGrant& grant = s.grants[0];
    MigGpuView& gpu = view_.gpus[grant.gpu];
    const auto slice =
        std::find_if(gpu.slices.begin(), gpu.slices.end(),
                     [&](const MigSliceView& v) { return v.at == *grant.at && !v.use; });
    if (slice == gpu.slices.end()) return;
    const Arrivals::Job job = waiting_.at(s.job);
    waiting_.erase(s.job);
    const Instant begin = view_.now + (s.turn == 0 ? Duration{} : policy_.change);
    at_once_ += s.turn == 0 && count_.counts(job.id) ? 1 : 0;
    slice->use = MigUse{job.id, begin + job.limit};
    if (setup_.ends == KnownEnds::none) slice->use->until.reset();
    push({begin + job.run, What::end, job.id, grant.gpu});
    count_.started(job, view_.now - job.at);
  }

  const MigTable& table_;
  const DemandSetup& setup_;
  Arrivals arrivals_;
  Count count_;
  MigPolicy policy_ = setup_.policy;
  MigView view_;
  std::map<JobId, Arrivals::Job> waiting_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t changes_ = 0, at_once_ = 0;
};

}  // namespace

DemandResult random_demand(DemandMode mode, const DemandSetup& setup) {
  const MigTable table = compiled(h100_geometry());
  GANTRY_ASSERT(setup.mix.size() == table.profiles().size(), "a weight for each profile");
  if (mode == DemandMode::cycle) return through_the_cycle(setup, table);
  if (mode != DemandMode::repartition) return without(mode, setup, table);
  return Cluster(table, setup).run();
}

std::vector<double> even_jobs() {
  std::vector<double> mix;
  for (const MigProfile& p : h100_geometry().profiles)
    mix.push_back(p.name.ends_with("+me") ? 0 : 1);
  return mix;
}

std::vector<double> even_demand() {
  std::vector<double> mix = even_jobs();
  for (std::size_t p = 0; p < mix.size(); ++p) mix[p] /= h100_geometry().profiles[p].memory_slices;
  return mix;
}

}  // namespace gantry::sched
