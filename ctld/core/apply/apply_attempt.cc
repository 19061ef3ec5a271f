// apply() of events about attempts: placement, start, release of nodes, end, requeue, steps.
#include <algorithm>

#include "common/assert.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_shrink.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/state/history_row.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/shares.h"

namespace gantry::core {
namespace {

NodeRun& run_on(Job& job, NodeId node) {
  GANTRY_ASSERT(job.active != nullptr, "a placed job");
  for (NodeRun& run : job.active->nodes)
    if (run.grant.node == node) return run;
  assertion_failed("run_on", __FILE__, __LINE__, "the job is not placed on this node");
}

void add_usage(Usage& sum, const Usage& part) {
  sum.cpu_user_us += part.cpu_user_us;
  sum.cpu_system_us += part.cpu_system_us;
  sum.memory_peak_bytes = std::max(sum.memory_peak_bytes, part.memory_peak_bytes);
  sum.io_read_bytes += part.io_read_bytes;
  sum.io_write_bytes += part.io_write_bytes;
  sum.gpus.insert(sum.gpus.end(), part.gpus.begin(), part.gpus.end());
}

void set_started(MutableState& state, Job& job, Instant at) {
  job.started = at;
  if (job.started_once) return;
  job.started_once = true;
  if (!job.is_element()) return;
  Job& array = state.jobs.at(job.array);
  --array.tasks->never_started;
  touch(state, array);
}

// `until`: when the suspension ended, which may be earlier than its report.
void end_suspension(MutableState& state, Job& job, Instant at, Instant until) {
  Active& active = *job.active;
  if (!active.suspended) return;
  active.suspended_before = active.suspended_until(until);
  active.suspended.reset();
  go_on_charging(state, job, at);
  set_aside(state, job);
  start_charge(state, job, at);
}

// When the last of the job's nodes was released; nullopt for a job that was never placed.
std::optional<Instant> end_of(const Job& job) {
  std::optional<Instant> last;
  if (job.active)
    for (const NodeRun& run : job.active->nodes) last = std::max(last, run.ended);
  return last;
}

EndedBy ended_by(Outcome outcome) {
  switch (outcome) {
    case Outcome::preempted: return EndedBy::preemption;
    case Outcome::node_fail: return EndedBy::node_failure;
    case Outcome::launch_failed: return EndedBy::launch_failure;
    default: return EndedBy::itself;
  }
}

// True if the job was preempted for another job of its own tenant; then nothing is credited.
bool own_doing(const Job& job) {
  return job.active && job.active->finish && job.active->finish->for_own;
}

EndedBy ended_by(RequeueWhy why) {
  switch (why) {
    case RequeueWhy::preempted: return EndedBy::preemption;
    case RequeueWhy::node_failure: return EndedBy::node_failure;
    case RequeueWhy::launch_failure:
    case RequeueWhy::start_timeout: return EndedBy::launch_failure;
    case RequeueWhy::idle_gpus:
    case RequeueWhy::asked: return EndedBy::itself;
  }
  return EndedBy::itself;
}

}  // namespace

void apply_event(MutableState& state, Instant at, const event::JobPlaced& e) {
  JobEdit job(state, e.job);
  job->phase = must_move(Trigger::place, job->phase);
  GANTRY_ASSERT(!job->is_array() && e.attempt > job->attempt && !e.grants.empty(), "a placement");
  job->attempt = e.attempt;
  job->started.reset();
  job->cause.clear();
  job->active = std::make_unique<Active>();
  job->active->placed = at;
  job->active->exclusive = e.exclusive;
  job->active->charge = e.charge;
  job->active->waits = e.waits;
  job->active->use = e.use;
  for (const sched::NodeGrant& grant : e.grants) {
    job->active->nodes.emplace_back().grant = grant;
    take_grant(state, *job, grant, e.exclusive);
  }
  open_bill(state, e, *job, at);
  set_aside(state, *job);
  start_charge(state, *job, at);
  take_licenses(state, *job);
}

void apply_event(MutableState& state, Instant, const event::NodeReady& e) {
  JobEdit job(state, e.job);
  must_move(Trigger::ready, job->phase);
  run_on(*job, e.node).state = e.state;
}

void apply_event(MutableState& state, Instant at, const event::JobStarted& e) {
  JobEdit job(state, e.job);
  job->phase = must_move(Trigger::started, job->phase);
  set_started(state, *job, e.started.value_or(at));
  set_aside(state, *job);  // the time limit counts from now
}

void apply_event(MutableState& state, Instant, const event::JobWarned& e) {
  JobEdit job(state, e.job);
  job->active->warned = true;
}

void apply_event(MutableState& state, Instant at, const event::JobSuspended& e) {
  JobEdit job(state, e.job);
  must_move(Trigger::suspend, job->phase);
  GANTRY_ASSERT(!job->active->suspended, "a job is suspended once");
  job->active->suspended = at;
  stop_charging(state, *job, at);
  end_charge(state, *job, at);
}

void apply_event(MutableState& state, Instant at, const event::JobResumed& e) {
  JobEdit job(state, e.job);
  must_move(Trigger::resume, job->phase);
  end_suspension(state, *job, at, at);
}

void apply_event(MutableState& state, Instant, const event::NodeFrozen& e) {
  JobEdit job(state, e.job);
  run_on(*job, e.node).frozen = e.frozen;
}

void apply_event(MutableState& state, Instant at, const event::JobFinishing& e) {
  JobEdit job(state, e.job);
  job->phase = must_move(Trigger::finish, job->phase);
  end_suspension(state, *job, at, at);
  Finish finish;
  finish.since = job->active->finish ? job->active->finish->since : at;
  finish.outcome = e.outcome;
  finish.exit = e.exit;
  finish.requeue = e.requeue;
  finish.hold = e.hold;
  // A victim that meanwhile ends for another reason keeps the deadline that it was told.
  finish.for_own = e.for_own;
  finish.grace = !e.grace && job->active->finish ? job->active->finish->grace : e.grace;
  job->active->finish = std::move(finish);
  job->cause = e.cause;
}

void apply_event(MutableState& state, Instant at, const event::NodeExited& e) {
  JobEdit job(state, e.job);
  job->phase = must_move(Trigger::exited, job->phase);
  const Instant ended = e.ended.value_or(at);
  end_suspension(state, *job, at, ended);
  NodeRun& run = run_on(*job, e.node);
  GANTRY_ASSERT(run.state != RunState::released, "a node lets go once");
  run.state = RunState::released;
  run.cause = e.cause;
  run.exit = e.exit;
  run.message = e.message;
  run.ended = ended;
  add_usage(job->active->usage, e.usage);
  // The report of the exit sets the start time if Started never came or had another time.
  const bool batch_node = job->active->nodes.front().grant.node == e.node;
  if (batch_node && e.started)
    set_started(state, *job, *e.started);
  else if (!job->started && batch_node && e.ran)
    set_started(state, *job, std::max(job->active->placed, ended - *e.ran));
  give_grant(state, *job, run.grant, job->active->exclusive);
  release_held(state, *job, run, ended);
  if (run.given_back && job->phase == Phase::running) set_aside(state, *job);
  if (!job->active->all_released()) return;
  end_charge(state, *job, at);
  give_licenses(state, *job);
}

void apply_event(MutableState& state, Instant at, const event::JobEnded& e) {
  JobEdit job(state, e.job);
  job->phase = must_move(Trigger::end, job->phase);
  GANTRY_ASSERT(!job->active || job->active->all_released(), "no node holds it any more");
  job->outcome = e.outcome;
  job->exit = e.exit;
  job->cause = e.cause;
  job->ended = end_of(*job).value_or(at);
  settle_bill(state, *job, at, own_doing(*job) ? EndedBy::itself : ended_by(e.outcome));
  unindex_ended(state, *job);
  if (job->is_element()) {
    Job& array = state.jobs.at(job->array);
    ArrayState& tasks = *array.tasks;
    touch(state, array);
    (e.outcome == Outcome::completed ? tasks.done_ok : tasks.done_bad).insert(job->ordinal);
    if (!job->started_once) --tasks.never_started;
    tasks.note_end(e.outcome, e.exit);
  }
  state.ended.emplace_back(at, e.job);  // the job is shown for a while after the report
  if (!job->is_array()) state.unfolded.history.push_back(history_of(state, *job));
}

namespace {

// The outcome that the history records for a run after which the job is requeued.
Outcome outcome_of_run(RequeueWhy why) {
  switch (why) {
    case RequeueWhy::node_failure: return Outcome::node_fail;
    case RequeueWhy::preempted: return Outcome::preempted;
    default: return Outcome::cancelled;
  }
}

}  // namespace

void apply_event(MutableState& state, Instant at, const event::JobRequeued& e) {
  JobEdit job(state, e.job);
  job->phase = must_move(Trigger::requeued, job->phase);
  GANTRY_ASSERT(job->active && job->active->all_released(), "no node holds it any more");
  settle_bill(state, *job, at, own_doing(*job) ? EndedBy::itself : ended_by(e.why));
  if (job->started)
    state.unfolded.history.push_back(history_of_run(state, *job, at, outcome_of_run(e.why)));
  job->active.reset();
  job->started.reset();
  ++job->restarts;
  if (e.why == RequeueWhy::launch_failure)
    ++job->launch_failures;
  else
    job->launch_failures = 0;
  if (e.why == RequeueWhy::preempted)
    ++job->preemptions;  // a preempted job keeps its place in the queue
  if (e.why == RequeueWhy::asked || e.why == RequeueWhy::idle_gpus) job->eligible = at;
  job->not_before = e.not_before;
  job->backing_off = e.not_before.has_value();
  job->hold = e.hold;
  job->cause = e.cause;
}

void apply_event(MutableState& state, Instant at, const event::NodesGivenBack& e) {
  JobEdit job(state, e.job);
  GANTRY_ASSERT(job->phase == Phase::running && !job->active->suspended, "a job that runs");
  end_charge(state, *job, at);
  for (const NodeId node : e.nodes) run_on(*job, node).given_back = at;
  job->active->charge = e.charge;
  job->active->use = e.use;
  start_charge(state, *job, at);
}

void apply_event(MutableState& state, Instant, const event::StepLimitSet& e) {
  JobEdit job(state, e.job);
  for (StepState& step : job->active->steps)
    if (step.id == e.step) step.time_limit = e.time_limit;
}

void apply_event(MutableState& state, Instant at, const event::StepCreated& e) {
  JobEdit job(state, e.job);
  Active& active = *job->active;
  // Components of a heterogeneous job share their numbers, so one of them may miss some.
  GANTRY_ASSERT(e.step >= active.next_step, "steps are numbered in order");
  active.next_step = StepId(e.step.value() + 1);
  StepState step;
  step.id = e.step;
  step.name = e.name;
  step.tasks = e.tasks;
  step.cpus = e.cpus;
  step.nodes = e.nodes;
  step.cores = e.cores;
  step.node_tasks = e.node_tasks;
  step.cyclic = e.cyclic;
  step.block = e.block;
  step.ranks = e.ranks;
  step.gpus = e.gpus;
  step.memory = e.memory;
  step.time_limit = e.time_limit;
  step.gpus_seen = e.gpus_seen;
  step.tres = e.tres;
  step.started = at;
  if (active.steps.size() >= kMaxStepsKept) active.steps.erase(active.steps.begin());
  active.steps.push_back(std::move(step));
}

void apply_event(MutableState& state, Instant, const event::StepEnded& e) {
  JobEdit job(state, e.job);
  for (StepState& step : job->active->steps) {
    if (step.id != e.step) continue;
    step.exit = e.exit;
    step.started = e.started;
    step.ended = e.ended;
    step.usage = e.usage;
    step.timed_out = e.timed_out;
  }
}

}  // namespace gantry::core
