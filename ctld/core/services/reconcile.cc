#include "ctld/core/services/reconcile.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/gate.h"
#include "common/proto/gpu_rows.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_service.h"
#include "ctld/core/job/submit/submit.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/services/memory.h"
#include "ctld/core/services/replica_job.h"
#include "ctld/core/services/sets.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr Duration kLook = seconds(1);
constexpr Duration kLongestBackOff = minutes(5);
constexpr std::uint32_t kMostStarts = 50;  // replicas of one service that one look makes

struct Replica {
  const Job* job = nullptr;
  ReplicaOf of;
  bool ready = false;
  bool leaving = false;  // it has to end soon, and is replaced first
};

// The controller's periodic look at one service.
class Look {
 public:
  Look(Context& ctx, const std::string& name, const tenancy::Service& doc)
      : ctx_(ctx), name_(name), doc_(doc), marks_(ctx.rt.services->services[name]) {}

  void run() {
    collect();
    judge_replicas();
    keep_history();
    if (!service().paused) decide();
    if (!service().paused) roll();
    adjust();
  }

 private:
  [[nodiscard]] const ServiceState& service() const { return ctx_.state.services.all.at(name_); }
  ReplicaMarks& marks_of(JobId id) { return ctx_.rt.services->replicas[id]; }

  void collect();
  void look_at_end(const Job& job, const ReplicaOf& of, ReplicaMarks& marks);
  [[nodiscard]] bool heard(const ReplicaMarks& marks, proto::ReplicaHealth health) const;
  [[nodiscard]] bool leaving(const Job& job) const;
  void judge_replicas();
  void keep_history();
  void failed(std::uint64_t revision);
  [[nodiscard]] scale::ScaleFacts facts() const;
  void decide();
  [[nodiscard]] scale::RolloutFacts rollout_facts(const ReplicaSet& before,
                                                  const ReplicaSet& fresh) const;
  [[nodiscard]] std::uint32_t wanted_of(const std::string& version) const;
  [[nodiscard]] std::uint32_t ready_of(std::uint64_t revision) const;
  void roll();
  void roll(const ReplicaSet& before, const ReplicaSet& fresh);
  void adjust();
  void adjust(const ReplicaSet& set, std::uint32_t target);
  void start(const ReplicaSet& set, std::uint32_t count);
  void drain(const Replica& replica, const std::string& why);

  Context& ctx_;
  const std::string& name_;
  const tenancy::Service& doc_;
  ServiceMarks& marks_;
  std::vector<Replica> replicas_;  // replicas that have not ended and are not being drained
};

bool Look::heard(const ReplicaMarks& marks, proto::ReplicaHealth health) const {
  return std::any_of(marks.gates.begin(), marks.gates.end(), [&](const auto& one) {
    return one.second.at + kGateSilent > ctx_.now && one.second.report.health == health;
  });
}

// True if its node is drained, its device has a fault, or its time limit is near.
bool Look::leaving(const Job& job) const {
  if (!job.placed()) return false;
  for (const NodeRun& run : job.active->nodes) {
    const Node& node = ctx_.state.node(run.grant.node);
    if (node.intent != NodeIntent::open || node.health != NodeHealth::up) return true;
    for (const GpuGrant& gpu : run.grant.devices)
      for (const proto::DrainedGpu& bad : node.drained_gpus)
        if (gpu.gpu < node.facts.gpus.gpus.size() && node.facts.gpus.gpus[gpu.gpu].uuid == bad.uuid)
          return true;
  }
  const auto end = limit_end(ctx_.state, job);
  return end && *end - ctx_.now < doc_.startup + doc_.drain + seconds(30);
}

void Look::failed(std::uint64_t revision) {
  SetMarks& set = marks_.sets[revision];
  ++set.failures;
  ++set.facts.failures;
  const std::int64_t back_off = std::int64_t{1} << std::min(set.failures - 1, 10u);
  set.next_try = ctx_.now + std::min(seconds(back_off), kLongestBackOff);
}

std::string end_text(const Job& job) {
  if (!job.cause.empty()) return job.cause;
  if (job.exit.signal != 0)
    return fmt::format("{}, by signal {}", enum_name(*job.outcome), job.exit.signal);
  return fmt::format("{}, with exit code {}", enum_name(*job.outcome), job.exit.code);
}

void Look::look_at_end(const Job& job, const ReplicaOf& of, ReplicaMarks& marks) {
  if (marks.settled) return;
  marks.settled = true;
  if (marks.draining) return;
  if (job.outcome != Outcome::node_fail) {
    if (!marks.was_ready)
      failed(of.revision);
    else
      marks_.sets[of.revision].next_try = ctx_.now + seconds(1);
  }
  ctx_.record(
      event::ServiceNoted{name_,
                          fmt::format("replica {} of {} ended: {}", display_id(ctx_.state, job),
                                      of.version, end_text(job)),
                          {}});
}

void Look::collect() {
  const auto jobs = ctx_.state.services.jobs.find(name_);
  if (jobs == ctx_.state.services.jobs.end()) return;
  const std::set<JobId> ids = jobs->second;
  for (const JobId id : ids) {
    const Job& job = ctx_.state.jobs.at(id);
    const ReplicaOf& of = ctx_.state.services.replicas.at(id);
    const bool known = ctx_.rt.services->replicas.contains(id);
    if (job.phase ==
        Phase::ended) {  // no event for a job that ended before this controller started
      if (known) look_at_end(job, of, marks_of(id));
      continue;
    }
    ReplicaMarks& marks = marks_of(id);
    const bool ready = heard(marks, proto::ReplicaHealth::ready);
    if (ready && !marks.was_ready) {
      marks.was_ready = true;
      SetMarks& set = marks_.sets[of.revision];
      set.failures = 0;
      const Duration took = ctx_.now - job.submitted;
      marks_.start_time =
          marks_.start_time.us == 0 ? took : microseconds((marks_.start_time.us * 3 + took.us) / 4);
    }
    if (!ready)
      marks.ready.reset();
    else if (!marks.ready)
      marks.ready = ctx_.now;
    if (marks.draining || job.phase == Phase::finishing) continue;
    replicas_.push_back({&job, of, ready, leaving(job)});
  }
}

// Ends replicas that fail their checks, or did not become ready in time.
void Look::judge_replicas() {
  const bool seen_by_gates =
      std::any_of(ctx_.rt.services->gates.begin(), ctx_.rt.services->gates.end(),
                  [&](const auto& gate) { return gate.second.at + kGateSilent > ctx_.now; });
  std::vector<Replica> left;
  for (const Replica& replica : replicas_) {
    ReplicaMarks& marks = marks_of(replica.job->id);
    std::string why;
    if (heard(marks, proto::ReplicaHealth::dead)) {
      why = "it does not answer its liveness probe";
      for (const auto& [gate, said] : marks.gates)
        if (said.report.health == proto::ReplicaHealth::dead && !said.report.why.empty())
          why += ": " + said.report.why;
    } else if (seen_by_gates && !marks.was_ready && replica.job->phase == Phase::running &&
               replica.job->started && *replica.job->started + doc_.startup <= ctx_.now) {
      why = fmt::format("it was not ready within {} s", doc_.startup.us / 1'000'000);
      for (const auto& [gate, said] : marks.gates)
        if (!said.report.why.empty()) {
          why += ": " + said.report.why;
          break;
        }
    }
    if (why.empty()) {
      left.push_back(replica);
      continue;
    }
    if (!marks.was_ready) failed(replica.of.revision);
    marks.settled = true;
    marks.draining = ctx_.now;
    ctx_.record(event::ServiceNoted{
        name_,
        fmt::format("replica {} of {} is replaced: {}", display_id(ctx_.state, *replica.job),
                    replica.of.version, why),
        {}});
    end_job(ctx_, replica.job->id, Outcome::failed,
            fmt::format("replica of service {}: {}", name_, why));
  }
  replicas_ = std::move(left);
}

// The forecast needs earlier days, which a restarted controller has to load.
void Look::keep_history() {
  if (!doc_.scale.forecast) return;
  if (!std::exchange(marks_.remembered, true))
    marks_.load.remember(service().history, service().history_at);
  const auto span = static_cast<std::uint64_t>(ctx_.now.us / scale::kHistorySpan.us) - 1;
  if (service().history_at >= span) return;
  if (const auto most = marks_.load.most_of_span(span))
    ctx_.record(event::ServiceHistory{name_, span, *most});
}

scale::ScaleFacts Look::facts() const {
  scale::ScaleFacts out;
  out.now = ctx_.now;
  out.local_minute = ctx_.state.ledger.prices.zone.local_of(ctx_.now) / 60;
  for (const auto& [gate, n] : marks_.waiting)
    if (const auto it = ctx_.rt.services->gates.find(gate);
        it != ctx_.rt.services->gates.end() && it->second.at + kGateSilent > ctx_.now)
      out.waiting += n;  // requests that wait at a gate that is gone do not count
  out.start_time = marks_.start_time;
  out.wanted = service().wanted;
  out.shape = service().shape;
  out.cost = marks_.cost;
  std::int64_t sum = 0;
  std::int64_t count = 0;
  std::map<NodeId, std::uint32_t> on_node;
  for (const Replica& replica : replicas_) {
    if (replica.job->placed())
      out.on_one_node =
          std::max(out.on_one_node, ++on_node[replica.job->active->nodes.front().grant.node]);
    const auto marks = ctx_.rt.services->replicas.find(replica.job->id);
    if (marks == ctx_.rt.services->replicas.end()) continue;
    for (const auto& [gate, said] : marks->second.gates) {
      if (said.report.response.us <= 0) continue;
      sum += said.report.response.us;
      ++count;
    }
  }
  if (count > 0) out.service_time = microseconds(sum / count);
  return out;
}

void Look::decide() {
  marks_.load.judge(doc_.target, doc_.percentile, ctx_.now);
  const scale::ScaleAnswer answer = scale::scale(doc_, marks_.load, facts(), marks_.memory);
  marks_.reason = answer.reason;
  const ServiceState& s = service();
  if (answer.replicas == s.wanted && answer.shape == s.shape) return;
  std::string text = answer.replicas == s.wanted
                         ? fmt::format("shape {} instead of {}", answer.shape + 1, s.shape + 1)
                         : fmt::format("{} replica{} instead of {}", answer.replicas,
                                       answer.replicas == 1 ? "" : "s", s.wanted);
  text += ": " + answer.reason;
  ctx_.record(
      event::ServiceScaled{name_, answer.replicas, answer.shape, answer.reason, std::move(text)});
}

std::uint32_t Look::ready_of(std::uint64_t revision) const {
  return static_cast<std::uint32_t>(std::count_if(
      replicas_.begin(), replicas_.end(),
      [&](const Replica& r) { return r.of.revision == revision && r.ready && !r.leaving; }));
}

// The number of replicas that a version should have, by its weight; at least one if it gets
// requests.
std::uint32_t Look::wanted_of(const std::string& version) const {
  std::uint64_t all = 0, own = 0;
  for (const tenancy::ServiceVersion& v : doc_.versions) {
    all += v.weight;
    if (v.name == version) own = v.weight;
  }
  if (own == 0 || service().wanted == 0) return 0;
  return static_cast<std::uint32_t>((service().wanted * own + all - 1) / all);
}

scale::RolloutFacts Look::rollout_facts(const ReplicaSet& before, const ReplicaSet& fresh) const {
  const auto facts_of = [&](const ReplicaSet& set) {
    scale::SetFacts out;
    if (const auto it = marks_.sets.find(set.revision); it != marks_.sets.end())
      out = it->second.facts;
    out.part = set.part;
    out.ready = ready_of(set.revision);
    return out;
  };
  return {wanted_of(fresh.what.name), ctx_.now, service().stepped, facts_of(before),
          facts_of(fresh)};
}

void Look::roll() {
  for (const tenancy::ServiceVersion& v : doc_.versions) {
    const ReplicaSet* fresh = newest_set(service(), v.name);
    if (fresh == nullptr) continue;
    if (const ReplicaSet* before = set_before(service(), *fresh)) roll(*before, *fresh);
  }
}

void Look::roll(const ReplicaSet& before, const ReplicaSet& fresh) {
  using Kind = scale::RolloutStep::Kind;
  const std::string version = fresh.what.name;
  const scale::RolloutStep step =
      scale::next_step(doc_.rollout, doc_.target, doc_.percentile, rollout_facts(before, fresh));
  switch (step.kind) {
    case Kind::wait: return;
    case Kind::move:
      ctx_.record(
          event::ServiceStepped{name_,
                                {{fresh.revision, step.part}, {before.revision, 1000 - step.part}},
                                fmt::format("{} % of the requests of {} go to its new replicas: {}",
                                            step.part / 10, version, step.why)});
      for (auto& [revision, set] : marks_.sets) set.facts = {};
      return;
    case Kind::finish:
    case Kind::back: {
      const bool back = step.kind == Kind::back;
      event::ServiceSet sets = without_sets(name_, service(), version, back);
      sets.text = back ? fmt::format("{} went back to what it was: {}", version, step.why)
                       : fmt::format("{} is rolled out: {}", version, step.why);
      ctx_.record(sets);
      for (auto& [revision, set] : marks_.sets) set.facts = {};
      return;
    }
  }
}

void Look::adjust() {
  const std::vector<ReplicaSet> sets = service().sets;
  for (const ReplicaSet& set : sets) {
    std::uint32_t target = wanted_of(set.what.name);
    const ReplicaSet* newest = newest_set(service(), set.what.name);
    if (newest->revision != set.revision) {
      target = scale::counts_of(doc_.rollout, rollout_facts(set, *newest)).before;
    } else if (const ReplicaSet* before = set_before(service(), *newest)) {
      target = scale::counts_of(doc_.rollout, rollout_facts(*before, *newest)).fresh;
    }
    adjust(set, target);
  }
  for (const Replica& replica : replicas_) {
    const bool known = std::any_of(sets.begin(), sets.end(), [&](const ReplicaSet& set) {
      return set.revision == replica.of.revision;
    });
    if (!known) drain(replica, "another version has taken its place");
  }
  std::erase_if(marks_.sets, [&](const auto& one) {
    return std::none_of(sets.begin(), sets.end(),
                        [&](const ReplicaSet& set) { return set.revision == one.first; });
  });
}

void Look::adjust(const ReplicaSet& set, std::uint32_t target) {
  std::vector<Replica> staying, leaving;
  const auto last_shape = static_cast<std::uint32_t>(set.what.shapes.size() - 1);
  const std::uint32_t shape = std::min(service().shape, last_shape);
  for (const Replica& replica : replicas_) {
    if (replica.of.revision != set.revision) continue;
    (replica.leaving || replica.of.shape != shape ? leaving : staying).push_back(replica);
  }
  if (staying.size() < target) {
    start(set, target - static_cast<std::uint32_t>(staying.size()));
  } else if (staying.size() > target) {
    // Replicas that do least are drained first: those that wait, then those that start, then those
    // with the fewest requests.
    const auto rank = [&](const Replica& r) {
      std::uint32_t running = 0;
      for (const auto& [gate, said] : marks_of(r.job->id).gates) running += said.report.running;
      return std::tuple(r.ready, r.job->placed(), running, UINT64_MAX - r.job->id.value());
    };
    std::sort(staying.begin(), staying.end(),
              [&](const Replica& a, const Replica& b) { return rank(a) < rank(b); });
    const std::size_t over = staying.size() - target;
    for (std::size_t i = 0; i < over; ++i) drain(staying[i], "fewer replicas are wanted");
  }
  const auto ready = static_cast<std::uint32_t>(
      std::count_if(staying.begin(), staying.end(), [](const Replica& r) { return r.ready; }));
  // Of the replicas that have to leave, only as many are drained as are replaced.
  std::uint32_t kept = target > ready ? target - ready : 0;
  for (const Replica& replica : leaving) {
    if (replica.ready && kept > 0) {
      --kept;
      continue;
    }
    if (replica.ready || staying.size() >= target)
      drain(replica, "its node, its device or its time limit lets it go");
  }
}

void Look::start(const ReplicaSet& set, std::uint32_t count) {
  SetMarks& marks = marks_.sets[set.revision];
  if (marks.next_try > ctx_.now) return;
  const Identity who = owner_of(set);
  for (std::uint32_t i = 0; i < std::min(count, kMostStarts); ++i) {
    auto made = submit_job(ctx_, who, replica_job(doc_, set, service().shape, ctx_.state));
    if (!made) {
      if (marks.refused != made.error().message)
        ctx_.record(event::ServiceNoted{
            name_,
            fmt::format("no replica of {} can be made: {}", set.what.name, made.error().message),
            {}});
      marks.refused = made.error().message;
      failed(set.revision);
      return;
    }
    marks.refused.clear();
    marks_.cost = made->cost_per_hour;
    marks_of(made->job);  // from here on its end is reported as an event
  }
}

void Look::drain(const Replica& replica, const std::string& why) {
  ReplicaMarks& marks = marks_of(replica.job->id);
  marks.draining = ctx_.now;
  marks.drain_why = why;
  if (replica.job->phase == Phase::running && marks.was_ready) return;
  end_job(ctx_, replica.job->id, Outcome::cancelled,
          fmt::format("replica of service {}: {}", name_, why));
}

// Ends drained replicas: no gate has a request in them, or their time to drain is over.
void finish_drained(Context& ctx) {
  std::vector<JobId> ids;
  for (const auto& [id, marks] : ctx.rt.services->replicas)
    if (marks.draining) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const JobId id : ids) {
    ReplicaMarks& marks = ctx.rt.services->replicas.at(id);
    const Job* job = ctx.state.jobs.find(id);
    if (job == nullptr || job->phase != Phase::running) continue;
    const ReplicaOf& of = ctx.state.services.replicas.at(id);
    const tenancy::Service* doc = service_document(ctx.state, of.service);
    if (marks.drain_revision == 0) {
      marks.drain_revision = ctx.rt.services->table.revision;
      continue;
    }
    bool busy = false;
    for (const auto& [name, gate] : ctx.rt.services->gates) {
      if (gate.at + kGateSilent <= ctx.now) continue;
      const auto said = marks.gates.find(name);
      const bool in_it = said != marks.gates.end() && said->second.at == gate.at &&
                         said->second.report.running > 0;
      busy = busy || gate.revision < marks.drain_revision || in_it;
    }
    const Duration patience = doc == nullptr ? Duration{} : doc->drain;
    if (busy && ctx.now - *marks.draining < patience) continue;
    end_job(ctx, id, Outcome::cancelled,
            fmt::format("replica of service {}: {}", of.service, marks.drain_why));
  }
}

// Ends replicas whose service was removed, and drops marks of forgotten jobs.
void clear_up(Context& ctx) {
  std::vector<JobId> orphans;
  for (const auto& [name, jobs] : ctx.state.services.jobs)
    if (!ctx.state.services.all.contains(name))
      orphans.insert(orphans.end(), jobs.begin(), jobs.end());
  for (const JobId id : orphans) {
    const Job& job = ctx.state.jobs.at(id);
    if (job.phase != Phase::ended && job.phase != Phase::finishing)
      end_job(ctx, id, Outcome::cancelled, "its service was removed");
  }
  std::erase_if(ctx.rt.services->replicas,
                [&](const auto& one) { return !ctx.state.services.replicas.contains(one.first); });
  std::erase_if(ctx.rt.services->services,
                [&](const auto& one) { return !ctx.state.services.all.contains(one.first); });
}

}  // namespace

std::optional<Instant> services_due(const Context& ctx) {
  if (ctx.state.services.all.empty() && ctx.state.services.jobs.empty()) return std::nullopt;
  return ctx.rt.services->looked + kLook;
}

void run_services(Context& ctx) {
  ctx.rt.services->looked = ctx.now;
  for (const std::string& name : service_names(ctx.state))
    if (const tenancy::Service* doc = service_document(ctx.state, name)) {
      Look(ctx, name, *doc).run();
      settle(ctx);
    }
  clear_up(ctx);
  refresh_table(ctx);
  finish_drained(ctx);
  settle(ctx);
}

}  // namespace gantry::core
