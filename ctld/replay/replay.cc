#include "ctld/replay/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <set>

#include "common/text/hostlist.h"
#include "ctld/replay/claims.h"
#include "ctld/replay/live.h"
#include "ctld/replay/share_book.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"
#include "ctld/sched/preempt/preempt.h"
#include "ctld/sched/tenancy.h"

namespace gantry::replay {
namespace {

constexpr int kMostRounds = 64;              // plans made for one moment
constexpr std::size_t kProgressEvery = 512;  // moments between two messages of progress
constexpr Instant kNever{std::numeric_limits<std::int64_t>::max()};

class Replay {
 public:
  Replay(const Trace& trace, const Cluster& cluster, const Site& site, const Yardstick& yardstick,
         const ReplayOptions& options)
      : trace_(trace),
        cluster_(cluster),
        site_(site),
        options_(options),
        deadline_(yardstick.deadline),
        shares_(site.compiled) {
    std::set<std::string> names;
    for (const TraceJob& job : trace.jobs) names.insert(job.tenant);
    out_.tenants.assign(names.begin(), names.end());
    std::vector<std::uint32_t> nodes;
    for (const std::string& name : out_.tenants) {
      const auto it = yardstick.nodes.find(name);
      nodes.push_back(it == yardstick.nodes.end() ? sched::kNoIndex : it->second);
    }
    const std::int64_t scale = 1000;  // units in a core or a GPU
    const auto total = static_cast<double>(cluster.total);
    meter_.emplace(FairShares(yardstick.view, nodes, cluster.unit, scale, total), names.size(),
                   total, yardstick.deadline, yardstick.view->half_life, trace.jobs.front().submit);
    out_.label = site.label;
    out_.deadline = yardstick.deadline;
    out_.total = cluster.total;
    out_.begin = trace.jobs.front().submit;
    out_.jobs.resize(trace.jobs.size());
  }

  Result<Outcome> run() {
    ASSIGN(enrolled, enrol_all(trace_, cluster_, site_, options_.checkpoint_every, shares_, out_));
    live_ = std::move(*enrolled);
    replica_.apply(sched::TenancyChanged{site_.compiled.view});
    for (const auto& node : site_.nodes) replica_.apply(node);
    for (const auto& queue : site_.queues) replica_.apply(queue);
    tell_shares();
    std::size_t moments = 0;
    for (Instant t = next_moment(); t != kNever; t = next_moment()) {
      meter_->advance(t, [this](std::size_t tenant) { return has_place(tenant); });
      out_.end = t;
      at_moment(t);
      if (options_.progress && moments++ % kProgressEvery == 0)
        options_.progress(done_, trace_.jobs.size());
    }
    if (options_.progress) options_.progress(trace_.jobs.size(), trace_.jobs.size());
    finish();
    return std::move(out_);
  }

 private:
  enum class Kind : std::uint8_t { end, gone, checkpoint, age, due };
  struct Event {
    Instant at;
    std::uint32_t job;
    // The epoch of the job when the event was made; an event with an older epoch is void.
    std::uint32_t epoch;
    Kind kind;
    bool operator>(const Event& o) const {
      return std::tuple{at, job, kind, epoch} > std::tuple{o.at, o.job, o.kind, o.epoch};
    }
  };
  // ---- time

  [[nodiscard]] Instant next_moment() const {
    Instant t = events_.empty() ? kNever : events_.top().at;
    if (next_ < trace_.jobs.size()) t = std::min(t, trace_.jobs[next_].submit);
    return std::min(t, next_start_.value_or(kNever));
  }

  void at_moment(Instant t) {
    bool changed = next_start_ == t, freed = false;
    for (; next_ < trace_.jobs.size() && trace_.jobs[next_].submit == t; ++next_) {
      const auto i = static_cast<std::uint32_t>(next_);
      if (out_.jobs[i].left_out) {
        ++done_;
        continue;
      }
      note(t, What::submitted, i);
      enqueue(i, t);
      changed = true;
    }
    std::vector<std::uint32_t> early;
    for (; !events_.empty() && events_.top().at == t; events_.pop()) {
      const Event event = events_.top();
      if (event.epoch != live_[event.job].epoch) continue;
      switch (event.kind) {
        case Kind::end:
          if (ends_early(event.job)) {
            early.push_back(event.job);
            break;
          }
          end(event.job, t);
          changed = freed = true;
          break;
        case Kind::gone:
          leave(event.job, t);
          changed = true;
          break;
        case Kind::checkpoint: save(event.job, t); break;
        case Kind::age:
          tell_queued(event.job, t);
          changed = true;
          break;
        case Kind::due:
          give_up(event.job, t);
          changed = true;
          break;
      }
    }
    for (const std::uint32_t job : early) {
      end(job, t);
      plan(t, true);
    }
    if (early.empty() && changed) plan(t, freed);
  }

  // ---- jobs

  [[nodiscard]] bool ends_early(std::uint32_t i) const {
    return live_[i].key.time_limit && live_[i].run < *live_[i].key.time_limit;
  }
  [[nodiscard]] Duration restart_of(const Live& live) const {
    return live.saved.us > 0 ? sched::kRestartTime : Duration{};
  }

  [[nodiscard]] Meter::Place place_of(std::uint32_t i) const {
    return {trace_.jobs[i].submit.us, i};
  }

  void enqueue(std::uint32_t i, Instant t) {
    live_[i].phase = Phase::waiting;
    meter_->queued(out_.jobs[i].tenant, out_.jobs[i].units, place_of(i));
    waiting_.insert(i);
    if (const auto latest = latest_start(i)) {
      if (t > *latest) return give_up(i, t);
      events_.push({*latest + microseconds(1), i, live_[i].epoch, Kind::due});
    }
    tell_queued(i, t);
  }

  // The time by which the job must end, as --deadline gives it.
  [[nodiscard]] std::optional<Instant> due_of(std::uint32_t i) const {
    if (!site_.deadlines || !trace_.jobs[i].due) return std::nullopt;
    return trace_.jobs[i].submit + *trace_.jobs[i].due;
  }
  [[nodiscard]] std::optional<Instant> latest_start(std::uint32_t i) const {
    const auto due = due_of(i);
    if (!due) return due;
    return *due - live_[i].key.time_limit.value_or(Duration{});
  }
  void give_up(std::uint32_t i, Instant t) {
    if (live_[i].phase != Phase::waiting) return;
    replica_.apply(sched::JobUnqueued{JobId{i + 1}});
    waiting_.erase(i);
    ++live_[i].epoch;
    live_[i].phase = Phase::done;
    meter_->unqueued(out_.jobs[i].tenant, out_.jobs[i].units, place_of(i));
    out_.jobs[i].given_up = true;
    out_.jobs[i].ended = t;
    ++done_;
    note(t, What::given_up, i);
  }

  void tell_queued(std::uint32_t i, Instant t) {
    const Live& live = live_[i];
    sched::JobQueued queued{JobId{i + 1}, live.key, 0, trace_.jobs[i].submit, 1, 0, live.share};
    queued.rank = rank_of(i, t);
    queued.raised =
        site_.has_tenants && queued.rank > site_.compiled.classes[live.key.priority_class].value;
    replica_.apply(queued);
  }

  // The same as rank_of() in ctld/core; it asks to be called again at the time of the next step.
  std::int32_t rank_of(std::uint32_t i, Instant t) {
    if (!site_.has_tenants) return 0;
    const auto& classes = site_.compiled.classes;
    const tenancy::PriorityClass& own = classes[live_[i].key.priority_class];
    const Duration step = own.age_step.value_or(site_.oldest_first_after);
    if (step.us <= 0) return own.value;
    std::int64_t most = std::numeric_limits<std::int32_t>::max();
    for (const tenancy::PriorityClass& c : classes)
      if (c.preempts && c.value > own.value) most = std::min<std::int64_t>(most, c.value - 1);
    const Instant since = trace_.jobs[i].submit;
    const std::int64_t steps = (t - since).us / step.us;
    const std::int64_t rank = std::min(most, own.value + steps);
    if (rank < most) events_.push({since + step * (steps + 1), i, live_[i].epoch, Kind::age});
    return static_cast<std::int32_t>(rank);
  }

  void start(const sched::Start& start, Instant t) {
    const auto i = static_cast<std::uint32_t>(start.job.value() - 1);
    Live& live = live_[i];
    JobResult& result = out_.jobs[i];
    replica_.apply(sched::JobUnqueued{start.job});
    waiting_.erase(i);
    running_.insert(i);
    ++live.epoch;
    live.phase = Phase::running;
    live.started = t;
    live.saved_now = live.saved;
    live.checkpoint.reset();
    live.grants = start.grants;
    if (!result.started) result.started = t;
    tell_placed(i);
    live.rate = 0;
    for (const sched::NodeGrant& g : live.grants) {
      const std::uint32_t flavor = site_.nodes[g.node.value()].flavor;
      live.rate += sched::charge_rate(*site_.compiled.view, {flavor, sched::amount_of(g)});
    }
    charge(i, t, live.rate, 1);
    meter_->unqueued(result.tenant, result.units, place_of(i));
    meter_->started(result.tenant, result.units);
    Instant end = t + (live.run - live.saved) + restart_of(live);
    if (const auto due = due_of(i)) end = std::min(end, *due);
    events_.push({end, i, live.epoch, Kind::end});
    if (live.every) events_.push({t + *live.every, i, live.epoch, Kind::checkpoint});
    if (!options_.happenings) return;
    std::vector<std::string> names;
    for (const auto& g : live.grants) names.push_back(site_.nodes[g.node.value()].name);
    note(t, What::started, i).nodes = compress_hostlist(names);
  }

  void tell_placed(std::uint32_t i) {
    const Live& live = live_[i];
    sched::JobPlaced placed;
    placed.job = JobId{i + 1};
    placed.grants = live.grants;
    if (live.key.time_limit) placed.ends_by = live.started + *live.key.time_limit;
    placed.exclusive = site_.queues[live.key.partition.value()].exclusive_nodes;
    placed.partition = live.key.partition;
    placed.priority_class = live.key.priority_class;
    placed.rank = site_.has_tenants ? site_.compiled.classes[live.key.priority_class].value : 0;
    placed.share = live.share;
    placed.started = live.started;
    placed.checkpoint = live.checkpoint;
    placed.preemptions = out_.jobs[i].preemptions;
    if (live.phase == Phase::leaving) {
      placed.leaving = true;
      placed.ends_by = std::min(placed.ends_by.value_or(live.ends_by), live.ends_by);
    }
    replica_.apply(placed);
  }

  void charge(std::uint32_t i, Instant t, double by, int jobs) {
    if (!live_[i].share) return;
    shares_.change_rate(*live_[i].share, t, by, jobs);
    tell_shares();
  }
  void tell_shares() {
    for (const sched::ShareChanged& share : shares_.take_changes()) replica_.apply(share);
  }

  // How much of its run the job has done in this attempt, without the part that was saved before.
  [[nodiscard]] Duration progress_of(const Live& live, Instant t) const {
    return std::max(Duration{}, t - live.started - restart_of(live));
  }

  void save(std::uint32_t i, Instant t) {
    Live& live = live_[i];
    live.saved_now = live.saved + progress_of(live, t);
    live.checkpoint = t;
    tell_placed(i);
    events_.push({t + *live.every, i, live.epoch, Kind::checkpoint});
  }

  void release(std::uint32_t i, Instant t) {
    Live& live = live_[i];
    for (const sched::NodeGrant& g : live.grants)
      replica_.apply(sched::NodeReleased{JobId{i + 1}, g.node});
    charge(i, t, -live.rate, -1);
    running_.erase(i);
    ++live.epoch;
    live.grants.clear();
    const auto units = static_cast<double>(out_.jobs[i].units);
    if (live.took_room) out_.reclaimed += units * static_cast<double>((t - live.started).us) / 1e6;
    meter_->ended(out_.jobs[i].tenant, out_.jobs[i].units);
  }

  void end(std::uint32_t i, Instant t) {
    release(i, t);
    live_[i].phase = Phase::done;
    out_.jobs[i].ended = t;
    ++done_;
    note(t, What::ended, i);
  }

  void preempt(const sched::Preempt& p, Instant t) {
    const auto i = static_cast<std::uint32_t>(p.victim.value() - 1);
    const auto other = static_cast<std::uint32_t>(p.for_job.value() - 1);
    Live& live = live_[i];
    if (live.phase != Phase::running) return;
    ++out_.preemptions;
    live.phase = Phase::leaving;
    live.leaves_for = other;
    live_[other].took_room = true;
    live.ends_by = t + site_.compiled.classes[live.key.priority_class].grace;
    tell_placed(i);
    events_.push({live.ends_by, i, live.epoch, Kind::gone});
    note(t, What::preempted, i).other = other;
  }

  void leave(std::uint32_t i, Instant t) {
    Live& live = live_[i];
    JobResult& result = out_.jobs[i];
    const Duration undone = live.saved + progress_of(live, t) - live.saved_now;
    const double lost = static_cast<double>(undone.us) / 1e6 * static_cast<double>(result.units);
    result.lost += lost;
    ++result.preemptions;
    release(i, t);
    live.saved = live.saved_now;
    live.took_room = false;
    const auto& cls = site_.compiled.classes[live.key.priority_class];
    const bool again = cls.victim_mode == tenancy::VictimMode::requeue;
    Happening& h = note(t, again ? What::requeued : What::cancelled, i);
    h.lost = lost;
    h.other = live.leaves_for;
    if (again) return enqueue(i, t);
    live.phase = Phase::done;
    result.ended = t;
    result.cancelled = true;
    ++done_;
  }

  Happening& note(Instant t, What what, std::uint32_t i) {
    if (!options_.happenings) out_.happenings.clear();
    Happening& h = out_.happenings.emplace_back();
    h.at = t;
    h.what = what;
    h.job = i;
    return h;
  }

  // ---- plans

  void plan(Instant t, bool freed) {
    std::optional<Instant> soonest;
    sched::Policy policy = site_.switches;
    policy.verdicts = false;  // verdicts are not used in a replay
    // Planned jobs may move to an earlier start only when something has been freed. Otherwise
    // another search over the same nodes moves some jobs forward and delays small ones after them
    // (KTH trace: slowdown 91.7 instead of 88.9).
    if (!freed) policy.replans = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      const sched::Plan plan = sched::schedule(replica_, t, policy);
      ++out_.plans;
      out_.backfilled += plan.stats.backfilled;
      for (const sched::Start& s : plan.starts) start(s, t);
      for (const sched::Preempt& p : plan.preemptions) preempt(p, t);
      soonest.reset();
      for (const sched::Expected& e : plan.expected)
        if (auto& told = out_.jobs[e.job.value() - 1].foretold; !told) told = e.start;
      for (const sched::Expected& e : plan.expected)
        if (e.start > t) soonest = std::min(soonest.value_or(e.start), e.start);
      const bool more = plan.stats.budget_spent && !plan.starts.empty();
      if (plan.preemptions.empty() && !more) break;
    }
    // This start follows no end of a job: a job with a reservation starts when the reservation is
    // due.
    next_start_.reset();
    if (!waiting_.empty() && (policy.keep_reservations || next_moment() == kNever))
      next_start_ = soonest;
  }

  // For the measures: whether any planner could make room for the tenant's claim; see claims.h.
  [[nodiscard]] bool has_place(std::size_t tenant) const {
    return claim_has_place(
        {cluster_, site_, out_, *meter_, replica_, live_, waiting_, running_, deadline_}, tenant);
  }

  void finish() {
    if (!options_.happenings) out_.happenings.clear();
    std::size_t never = 0;
    std::string first;
    for (std::uint32_t i = 0; i < live_.size(); ++i)
      if (live_[i].phase == Phase::waiting && never++ == 0)
        first = fmt::format("{}:{}", trace_.name, trace_.jobs[i].line);
    if (never > 0)
      out_.notes.push_back(
          fmt::format("{} jobs could never start under this policy; the first is "
                      "{}",
                      never, first));
    out_.measures = meter_->tenants();
    out_.changes = meter_->changes();
    out_.violations = meter_->violations();
    out_.jain = meter_->jain();
    out_.jain_time = meter_->jain_time();
    out_.audit = replica_.audit();
  }

  const Trace& trace_;
  const Cluster& cluster_;
  const Site& site_;
  const ReplayOptions& options_;
  const Duration deadline_;  // deadline of a reclaim
  ShareBook shares_;
  std::optional<Meter> meter_;
  sched::Replica replica_;
  std::vector<Live> live_;
  std::set<std::uint32_t> waiting_, running_;
  std::optional<Instant> next_start_;  // the next start in the last plan
  std::size_t next_ = 0, done_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Outcome out_;
};

}  // namespace

Yardstick yardstick_of(const Site& site) {
  Yardstick yard;
  yard.view = site.compiled.view;
  for (const auto& [name, tenant] : site.compiled.tenants) yard.nodes[name] = tenant.quota_node;
  Duration grace{};
  for (const sched::ClassView& c : site.compiled.view->classes)
    if (c.preemptible) grace = std::max(grace, c.grace);
  yard.deadline = grace + kKillTime + kPlanningTime;
  return yard;
}

Result<Outcome> replay(const Trace& trace, const Cluster& cluster, const Site& site,
                       const Yardstick& yardstick, const ReplayOptions& options) {
  return Replay(trace, cluster, site, yardstick, options).run();
}

}  // namespace gantry::replay
