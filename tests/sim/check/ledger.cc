// See ledger.h.
#include "tests/sim/check/ledger.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/proto/node_report.h"
#include "ctld/core/event/journal.h"

namespace gantry::sim {

namespace event = core::event;
using core::Trigger;

namespace {

void add(Usage& sum, const Usage& part) {
  sum.cpu_user_us += part.cpu_user_us;
  sum.cpu_system_us += part.cpu_system_us;
  sum.memory_peak_bytes = std::max(sum.memory_peak_bytes, part.memory_peak_bytes);
  sum.io_read_bytes += part.io_read_bytes;
  sum.io_write_bytes += part.io_write_bytes;
}

template <class F>
void each_ordinal(const std::vector<core::Span>& spans, F&& f) {
  for (const core::Span& span : spans)
    for (std::uint32_t i = span.first; i <= span.last; ++i) f(i);
}

}  // namespace

void Ledger::read(const store::MemoryStore& store) {
  for (; specs_read_ < store.every_spec().size(); ++specs_read_)
    specs_.insert(store.every_spec()[specs_read_]);
  for (; events_read_ < store.every_event().size(); ++events_read_) {
    const Bytes& data = store.every_event()[events_read_].data;
    const auto entry = core::decode_event(data);
    if (!entry) broken("an event cannot be decoded: " + entry.error().message);
    trace_.octets(data);
    trace_.line(queue_.now(), "event " + core::event_json(entry->at, entry->event));
    take(entry->at, entry->event);
  }
  check_together();
}

// Checks that a commit places either all components of a heterogeneous job or none, on different
// nodes.
void Ledger::check_together() {
  for (const auto& [leader, parts] : placed_parts_) {
    const HetPart& het = *account(leader).spec.spec.het;
    if (parts != het.size)
      broken(
          fmt::format("{} of {} components of job {} are placed", parts, het.size, leader.value()));
    std::set<std::uint32_t> nodes;
    for (std::uint32_t i = 0; i < het.size; ++i)
      for (const Held& held : account(het.member(i)).nodes)
        if (!nodes.insert(held.grant.node.value()).second)
          broken(fmt::format("two components of job {} are on {}", leader.value(),
                             node_name(held.grant.node)));
  }
  placed_parts_.clear();
}

Account& Ledger::account(JobId id) {
  const auto it = jobs_.find(id);
  if (it == jobs_.end())
    broken(fmt::format("an event about job {}, which was never made", id.value()));
  return it->second;
}

void Ledger::move(Account& job, Trigger trigger) {
  const auto next = core::next_phase(trigger, job.phase);
  if (!next || job.forgotten)
    broken(fmt::format("job {} is {}: {} is not a move", job.id.value(), enum_name(job.phase),
                       core::kMoves[static_cast<std::size_t>(trigger)].name));
  job.phase = *next;
}

void Ledger::take(Instant at, core::EventRef any) {
  if (const auto* e = any.get_if<event::NodeDeclared>()) declared(*e);
  if (const auto* e = any.get_if<event::JobSubmitted>()) submitted(*e);
  if (const auto* e = any.get_if<event::TaskSplit>()) split(*e);
  if (const auto* e = any.get_if<event::TasksCancelled>()) tasks_cancelled(*e);
  if (const auto* e = any.get_if<event::JobHeld>()) move(account(e->job), Trigger::hold);
  if (const auto* e = any.get_if<event::JobReleased>()) move(account(e->job), Trigger::release);
  if (const auto* e = any.get_if<event::JobUpdated>()) {
    move(account(e->job), Trigger::update);
    if (e->begin) account(e->job).begin = e->begin;
  }
  if (const auto* e = any.get_if<event::JobPlaced>()) placed(at, *e);
  if (const auto* e = any.get_if<event::NodeReady>()) move(account(e->job), Trigger::ready);
  if (const auto* e = any.get_if<event::JobStarted>()) {
    move(account(e->job), Trigger::started);
    account(e->job).started = e->started.value_or(at);
  }
  if (const auto* e = any.get_if<event::JobFinishing>()) {
    move(account(e->job), Trigger::finish);
    Account& job = account(e->job);
    job.ending = !e->requeue && e->outcome != Outcome::cancelled;
    job.spared_until.reset();
    job.chosen = queue_.now();
    if (e->outcome == Outcome::preempted && e->grace) job.spared_until = job.chosen + *e->grace;
  }
  if (const auto* e = any.get_if<event::NodeExited>()) exited(at, *e);
  if (const auto* e = any.get_if<event::JobEnded>()) ended(at, *e);
  if (const auto* e = any.get_if<event::JobRequeued>()) requeued(*e);
  if (const auto* e = any.get_if<event::JobRevived>()) revived(*e);
  if (const auto* e = any.get_if<event::JobsForgotten>())
    for (const JobId id : e->jobs) {
      move(account(id), Trigger::forget);
      account(id).forgotten = true;
      --known_;
    }
  book_.take(at, any, jobs_);
  takings_.take(at, any);
}

void Ledger::declared(const event::NodeDeclared& e) {
  if (e.node.value() != nodes_.size()) broken("node ids are given in order");
  nodes_.push_back(e.name);
  held_.emplace_back();
}

void Ledger::submitted(const event::JobSubmitted& e) {
  const auto spec = specs_.find(e.job);
  if (spec == specs_.end()) broken(fmt::format("job {} has no spec", e.job.value()));
  auto stored = codec::decode<core::StoredSpec>(spec->second);
  if (!stored || jobs_.contains(e.job)) broken(fmt::format("job {} made twice", e.job.value()));
  Account& job = jobs_[e.job];
  job.id = e.job;
  job.spec = std::move(*stored);
  job.begin = job.spec.spec.begin;
  for (const Dependency& d : job.spec.spec.dependencies)
    if (const auto other = jobs_.find(d.job); other != jobs_.end())
      job.before[d.job] = other->second.ends.size() - (other->second.phase == Phase::ended ? 1 : 0);
  if (job.spec.spec.array) {
    for (const IndexRange& r : job.spec.spec.array->ranges)
      for (std::uint32_t i = r.first; i <= r.last; i += r.step) job.indexes.push_back(i);
    std::sort(job.indexes.begin(), job.indexes.end());
  }
  ++known_;
  const auto [made, fresh] = made_.try_emplace({job.spec.owner.user, job.spec.request_id}, e.job);
  if (!fresh && !account(made->second).forgotten)
    broken(fmt::format("request {} made job {} and then job {}", job.spec.request_id,
                       made->second.value(), e.job.value()));
  made->second = e.job;
}

void Ledger::split(const event::TaskSplit& e) {
  Account& array = account(e.array);
  if (array.phase != Phase::queued || e.ordinal >= array.indexes.size() ||
      !array.split.insert(e.ordinal).second || array.cancelled.contains(e.ordinal))
    broken(fmt::format("task {} of array {} is made an element, but is not pending", e.ordinal,
                       e.array.value()));
  if (array.final || array.final_tasks.contains(array.indexes[e.ordinal]))
    broken(fmt::format("task {} of array {} comes back after its cancel was acknowledged",
                       e.ordinal, e.array.value()));
  Account& job = jobs_[e.job];
  job.id = e.job;
  job.array = e.array;
  job.ordinal = e.ordinal;
  job.spec = array.spec;
  job.begin = array.begin;
  job.before = array.before;
  ++known_;
}

void Ledger::tasks_cancelled(const event::TasksCancelled& e) {
  Account& array = account(e.array);
  each_ordinal(e.ordinals, [&](std::uint32_t i) {
    if (i >= array.indexes.size() || array.split.contains(i) || !array.cancelled.insert(i).second)
      broken(
          fmt::format("task {} of array {} is cancelled, but is not pending", i, e.array.value()));
  });
}

// ---- attempts

void Ledger::may_start(Instant at, const Account& job) {
  const JobSpec& spec = job.spec.spec;
  if (spec.deadline && at >= *spec.deadline)
    broken(fmt::format("job {} starts after its deadline", job.id.value()));
  if (job.begin && at < *job.begin)
    broken(fmt::format("job {} starts before its begin time", job.id.value()));
  if (spec.any_dependency) return;
  for (const Dependency& d : spec.dependencies) {
    if (d.kind == DependencyKind::singleton || d.kind == DependencyKind::after_corr ||
        d.kind == DependencyKind::after || d.array_task)
      continue;
    const auto other = jobs_.find(d.job);
    if (other == jobs_.end()) continue;  // the job was unknown at the submit
    const bool array = !other->second.indexes.empty();
    const std::vector<Outcome>& ends = other->second.ends;
    const auto since = job.before.find(d.job);
    const std::size_t first = since == job.before.end() ? 0 : since->second;
    const bool met =
        std::any_of(ends.begin() + static_cast<std::ptrdiff_t>(std::min(first, ends.size())),
                    ends.end(), [&](Outcome end) {
                      const bool good = end == Outcome::completed;
                      return array || (d.kind == DependencyKind::after_ok      ? good
                                       : d.kind == DependencyKind::after_notok ? !good
                                                                               : true);
                    });
    if (!met)
      broken(fmt::format("job {} starts although it is {} job {}", job.id.value(),
                         enum_name(d.kind), d.job.value()));
  }
}

void Ledger::placed(Instant at, const event::JobPlaced& e) {
  Account& job = account(e.job);
  move(job, Trigger::place);
  if (job.final)
    broken(fmt::format("job {} is placed after its cancel was acknowledged", e.job.value()));
  if (e.attempt.value() != job.attempt.value() + 1)
    broken(fmt::format("job {}: attempt {} after {}", e.job.value(), e.attempt.value(),
                       job.attempt.value()));
  may_start(at, job);
  job.attempt = e.attempt;
  job.usage = Usage{};
  job.placed = at;
  job.started.reset();
  job.ended.reset();
  job.exclusive = e.exclusive;
  job.nodes.clear();
  for (const sched::NodeGrant& grant : e.grants) {
    const std::string& name = node_name(grant.node);
    NodeAccount& node = held_.at(grant.node.value());
    for (const std::uint16_t cpu : grant.cpus)
      if (!node.cpus.emplace(cpu, e.job).second)
        broken(fmt::format("core {} of {} is given to job {} and to job {}", cpu, name,
                           node.cpus.at(cpu).value(), e.job.value()));
    node.memory += grant.memory;
    const auto config = std::find_if(config_.nodes.begin(), config_.nodes.end(),
                                     [&](const NodeConfig& c) { return c.name == name; });
    if (node.memory > config->memory)
      broken(fmt::format("more memory of {} given than it has", name));
    if (!node.jobs.empty() && (e.exclusive || node.jobs.begin()->second))
      broken(fmt::format("job {} shares {}, which is taken exclusively", e.job.value(), name));
    node.jobs.emplace(e.job, e.exclusive);
    job.nodes.emplace_back().grant = grant;
  }
  if (const auto& het = job.spec.spec.het) ++placed_parts_[het->leader];
}

void Ledger::exited(Instant at, const event::NodeExited& e) {
  Account& job = account(e.job);
  move(job, Trigger::exited);
  const auto held = std::find_if(job.nodes.begin(), job.nodes.end(),
                                 [&](const Held& h) { return h.grant.node == e.node; });
  if (held == job.nodes.end() || held->released)
    broken(fmt::format("job {} lets go of {}, which it does not hold", e.job.value(),
                       node_name(e.node)));
  held->released = true;
  held->cause = e.cause;
  held->exit = e.exit;
  add(job.usage, e.usage);
  check_exit(e, job);
  check_times(at, e, job);
  NodeAccount& node = held_.at(e.node.value());
  for (const std::uint16_t cpu : held->grant.cpus) node.cpus.erase(cpu);
  node.memory -= held->grant.memory;
  node.jobs.erase(e.job);
}

void Ledger::check_exit(const event::NodeExited& e, const Account& job) {
  using proto::ExitCause;
  const std::string& name = node_name(e.node);
  const AttemptKey key{e.job, job.attempt};
  const auto wrong = [&](std::string_view what) {
    broken(fmt::format("job {} attempt {} is let go by {} ({}) although {}", e.job.value(),
                       job.attempt.value(), name, enum_name(e.cause), what));
  };
  if (truth_.live(name, key)) wrong("it lives there");
  constexpr Duration kTurn = milliseconds(100);
  const auto killed = truth_.killed(name, key);
  const bool by_node = e.cause == ExitCause::fenced || e.cause == ExitCause::node_rebooted;
  // The node may have killed it before it was chosen, and reports that only now.
  const bool since = killed && *killed >= job.chosen;
  if (job.spared_until && !by_node && since && *killed + kTurn < *job.spared_until)
    wrong(fmt::format("it was killed {} us before its grace was over",
                      (*job.spared_until - *killed).us));
  const bool blank = e.exit == ExitStatus{} && e.usage == Usage{};
  const bool given_up = e.cause == ExitCause::fenced || e.cause == ExitCause::node_rebooted;
  const node::Exit* truth = truth_.exit_of(name, key);
  if (given_up && blank) return;  // the node was given up, or could report no more
  if (truth == nullptr) {
    if (truth_.started(name, key)) wrong("it ran there and has left no exit");
    if (!blank || (e.cause != ExitCause::ordered && e.cause != ExitCause::launch_failed))
      wrong("it never was there");
    return;
  }
  if (e.cause == ExitCause::refused && truth_.started(name, key)) wrong("it ran there");
  if (!(truth->status == e.exit)) wrong("its exit was another one");
  if (!(truth->usage == e.usage))
    wrong(fmt::format("its usage was another one: {} us of CPU", truth->usage.cpu_user_us));
  if (truth->cause != e.cause && e.cause != ExitCause::ordered && e.cause != ExitCause::fenced)
    wrong(fmt::format("its machine says {}", enum_name(truth->cause)));
}

// Checks that the recorded times of a run are those that its machine measured: they are not
// stretched by pauses, and lie within what the controller knows.
void Ledger::check_times(Instant at, const event::NodeExited& e, Account& job) {
  // The clocks of two controllers may differ by this much; the later one's clock stands still until
  // it has caught up.
  constexpr Duration kClocks = seconds(41);
  constexpr Duration kLate = seconds(60);  // a report under way, of a node whose clock is not known
  const std::string& name = node_name(e.node);
  const Instant ended = e.ended.value_or(at);
  const auto wrong = [&](const std::string& what) {
    broken(
        fmt::format("job {} attempt {} on {}: {}", e.job.value(), job.attempt.value(), name, what));
  };
  const bool batch = job.nodes.front().grant.node == e.node;
  if (batch && e.started)
    job.started = e.started;
  else if (batch && !job.started && e.ran)  // computed by the wall clock of a node that rebooted
    job.started = std::max(job.placed, ended - *e.ran);
  if (ended < job.placed || ended > at) wrong("it ends outside of what the controller knows");
  if (batch && job.started && (*job.started < job.placed || *job.started > ended))
    wrong("it starts outside of what the controller knows");
  job.ended = std::max(job.ended, std::optional(ended));
  const node::Exit* truth = truth_.exit_of(name, {e.job, job.attempt});
  if (!batch || truth == nullptr || !truth->ran || !job.started) return;
  if (!(truth->usage == e.usage)) return;  // the node was given up before it could report
  const Duration told = ended - *job.started;
  if (told > *truth->ran || told + kClocks < *truth->ran)
    wrong(fmt::format("it ran for {} us, and {} us are written down", truth->ran->us, told.us));
  const Truth::End end = truth_.end_of(name, {e.job, job.attempt});
  // A clock that stood still after the end makes the end look later by the time that it lost.
  const Duration behind = truth_.stopped(name) - end.stopped;
  if (ended > end.at + behind + kClocks + kLate || ended + kClocks + kLate + end.slept < end.at)
    wrong(fmt::format("it ended {} s before what is written down", (ended - end.at).seconds()));
}

void Ledger::ended(Instant at, const event::JobEnded& e) {
  Account& job = account(e.job);
  move(job, Trigger::end);
  if (!job.ended) job.ended = at;
  job.outcome = e.outcome;
  job.ends.push_back(e.outcome);
  job.exit = e.exit;
  if (!job.indexes.empty()) {
    if (job.split.size() + job.cancelled.size() != job.indexes.size())
      broken(fmt::format("array {} ends with tasks pending", e.job.value()));
    for (const auto& [id, other] : jobs_)
      if (other.array == e.job && other.phase != Phase::ended)
        broken(fmt::format("array {} ends before its element {}", e.job.value(), id.value()));
    return;
  }
  if (e.outcome != Outcome::completed && e.outcome != Outcome::failed) return;
  if (job.spec.spec.kind == JobKind::allocation) return;  // the owner decides how it ended
  const bool refused = std::any_of(job.nodes.begin(), job.nodes.end(), [](const Held& held) {
    return held.cause == proto::ExitCause::refused;
  });
  if (refused && e.outcome == Outcome::failed) return;
  if (job.nodes.empty())
    broken(fmt::format("job {} {} without a start", e.job.value(), enum_name(e.outcome)));
  const node::Exit* truth =
      truth_.exit_of(node_name(job.nodes.front().grant.node), {e.job, job.attempt});
  if (truth == nullptr || !(truth->status == e.exit) ||
      (e.outcome == Outcome::completed) != (truth->status == ExitStatus{}))
    broken(fmt::format("job {} ends as {} with {}:{}, which is not what happened", e.job.value(),
                       enum_name(e.outcome), e.exit.code, e.exit.signal));
}

void Ledger::requeued(const event::JobRequeued& e) {
  Account& job = account(e.job);
  move(job, Trigger::requeued);
  if (job.final)
    broken(fmt::format("job {} is requeued after its cancel was acknowledged", e.job.value()));
  for (const Held& held : job.nodes)
    if (!held.released)
      broken(fmt::format("job {} is requeued while a node holds it", e.job.value()));
  job.nodes.clear();
  job.started.reset();
  job.ended.reset();
  job.ending = false;
  ++job.restarts;
}

void Ledger::revived(const event::JobRevived& e) {
  Account& job = account(e.job);
  move(job, Trigger::revive);
  if (!job.indexes.empty() || job.array != JobId{})
    broken(fmt::format("{} is a task or an array, and waits again", e.job.value()));
  job.nodes.clear();
  job.started.reset();
  job.ended.reset();
  job.outcome.reset();
  job.exit = {};
  job.final = job.ending = false;
  job.revived = queue_.now();
  ++job.restarts;
}

// ---- answers

void Ledger::submitted(const std::string& user, const std::string& request_id, JobId job) {
  if (!jobs_.contains(job))
    broken(fmt::format("job {} is acknowledged but not durable", job.value()));
  const auto [told, fresh] = told_.try_emplace({user, request_id}, job);
  if (fresh) acknowledged_.push_back(job);
  if (!fresh && told->second != job && !account(told->second).forgotten)
    broken(fmt::format("request {} was told job {} and then job {}", request_id,
                       told->second.value(), job.value()));
  told->second = job;
}

void Ledger::cancelled(const proto::CancelJobs& asked, const proto::JobsDone& done) {
  if (asked.signal) return;
  const auto named = [](const std::vector<proto::JobRef>& refs, JobId id) {
    return std::any_of(refs.begin(), refs.end(), [&](const auto& r) { return r.job == id; });
  };
  // Returns the id of a job, or of one component of a waiting heterogeneous job.
  const auto whose = [](const proto::JobRef& ref) {
    return ref.job.value() + ref.component.value_or(0);
  };
  const auto refused = [&](const proto::JobRef& ref) {
    return std::any_of(done.refused.begin(), done.refused.end(),
                       [&](const auto& r) { return whose(r.job) == whose(ref); });
  };
  for (const proto::JobRef& ref : asked.filter.jobs) {
    if (named(done.not_active, ref.job) || refused(ref) || !jobs_.contains(ref.job)) continue;
    Account& job = account(ref.job);
    // In the turn of its cancel the job may have been put back, after which it starts again.
    const bool again = job.revived == queue_.now() && job.phase != Phase::ended;
    if (ref.tasks.empty() && !ref.component && !job.ending && !again) job.final = true;
    if (const auto& het = job.spec.spec.het; het && het->offset == 0)
      for (std::uint32_t i = 0; i < het->size; ++i)
        if (Account& part = account(het->member(i));
            ref.component.value_or(i) == i && part.phase != Phase::ended && !part.ending)
          part.final = true;
    for (const IndexRange& r : ref.tasks)
      for (std::uint32_t i = r.first; i <= r.last; i += r.step) job.final_tasks.insert(i);
    for (auto& [id, element] : jobs_)
      if (element.array == ref.job && element.phase != Phase::ended && !element.ending &&
          (ref.tasks.empty() || job.final_tasks.contains(job.indexes.at(element.ordinal))))
        element.final = true;
  }
}

// ---- comparing

void Ledger::compare(const core::Job& job, const Account& account) const {
  const auto wrong = [&](std::string_view what) {
    broken(fmt::format("job {}: {} is not what the events say", job.id.value(), what));
  };
  if (account.forgotten) wrong("that it is known");
  if (job.phase != account.phase) wrong("its phase");
  if (job.attempt != account.attempt) wrong("its attempt");
  if (job.restarts != account.restarts) wrong("its count of restarts");
  if (job.outcome != account.outcome || !(job.exit == account.exit)) wrong("its end");
  if (job.phase == Phase::ended && job.ended != account.ended) wrong("when it ended");
  if (!job.active) return;
  if (job.started != account.started) wrong("when it started");
  if (!(job.active->usage == account.usage)) wrong("its usage");
  if (job.active->nodes.size() != account.nodes.size()) return wrong("its placement");
  for (std::size_t i = 0; i < account.nodes.size(); ++i) {
    const core::NodeRun& run = job.active->nodes[i];
    if (!(run.grant == account.nodes[i].grant)) wrong("its placement");
    if ((run.state == core::RunState::released) != account.nodes[i].released)
      wrong("what it holds");
  }
}

void Ledger::controller_starts() {
  for (auto& [id, job] : jobs_) job.spared_until.reset();
}

void Ledger::compare(const core::State& state) {
  book_.compare(state);
  if (++compared_ % 50 == 0) takings_.compare(state);
  std::size_t count = 0;
  state.jobs.walk(JobId{}, [&](const core::Job& job) {
    const auto it = jobs_.find(job.id);
    if (it == jobs_.end()) broken(fmt::format("job {} exists without an event", job.id.value()));
    compare(job, it->second);
    ++count;
    return true;
  });
  if (count != known_) broken(fmt::format("{} jobs are known, {} should be", count, known_));
  for (const core::Node& node : state.nodes) {
    if (node.id.value() >= held_.size()) broken("a node exists without an event");
    const NodeAccount& held = held_[node.id.value()];
    for (std::size_t cpu = 0; cpu < node.cpu_taken.size(); ++cpu)
      if (node.cpu_taken[cpu] != held.cpus.contains(static_cast<std::uint16_t>(cpu)))
        broken(fmt::format("core {} of {} is {}, the events say otherwise", cpu, node.name,
                           node.cpu_taken[cpu] ? "taken" : "free"));
    if (node.cpus_taken != held.cpus.size() || node.memory_taken != held.memory)
      broken(fmt::format("{}: what is taken is not the sum over its placements", node.name));
  }
}

}  // namespace gantry::sim
