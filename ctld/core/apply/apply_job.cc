// apply() of events about jobs that wait: submits, holds, updates, dependencies, array tasks.
#include <algorithm>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/notify/triggers.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/history_row.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/shares.h"

namespace gantry::core {

void apply_event(MutableState& state, Instant at, const event::JobSubmitted& e) {
  const auto spec = state.new_specs.find(e.job);
  GANTRY_ASSERT(spec != state.new_specs.end(), "a submit without its spec");
  const auto head = codec::decode<SpecHead>(spec->second);
  GANTRY_ASSERT(head.has_value(), "a spec that we encoded");
  Job& job = state.jobs.add(e.job);
  job.id = e.job;
  job.spec = std::move(spec->second);
  job.spec.shrink_to_fit();
  state.new_specs.erase(spec);
  fill_job(state, job, *head, e.partition, e.time_limit);
  job.submitted = at;
  job.not_before = e.not_before;
  job.eligible = std::max(at, e.not_before.value_or(at));
  job.hold = e.hold;
  job.class_priority = e.class_priority;
  set_queues(job, e.queues);
  set_windows(job, e.windows);
  if (job.dependencies) {
    GANTRY_ASSERT(e.dependencies.size() == job.dependencies->list.size(), "a status for each");
    for (std::size_t i = 0; i < e.dependencies.size(); ++i)
      job.dependencies->list[i].status = e.dependencies[i];
  }
  if (job.tasks) {
    job.tasks->corr_met = OrdinalSet::from_spans(e.corr_met);
    job.tasks->corr_never = OrdinalSet::from_spans(e.corr_never);
  }
  set_share(state, job);
  index_job(state, job, &*head);
  touch(state, job);
}

void apply_event(MutableState& state, Instant, const event::JobHeld& e) {
  JobEdit job(state, e.job);
  job->hold = e.hold;
  job->cause = e.cause;
}

void apply_event(MutableState& state, Instant at, const event::JobReleased& e) {
  JobEdit job(state, e.job);
  job->hold = Hold::none;
  if (job->priority == 0u) job->priority.reset();
  job->cause.clear();
  job->launch_failures = 0;
  if (job->backing_off) {
    job->not_before.reset();
    job->backing_off = false;
  }
  job->eligible = std::max(at, job->not_before.value_or(at));
}

namespace {

bool named_queue(const Job& job, PartitionId id) {
  return job.queues && std::find(job.queues->begin(), job.queues->end(), id) != job.queues->end();
}

// True if a job of class `now` asks for anything that one of class `before` did not: more, longer,
// other nodes.
bool asks_for_more(const sched::ClassKey& before, const sched::ClassKey& now) {
  if (before.time_limit && (!now.time_limit || *now.time_limit > *before.time_limit)) return true;
  JobShape less = before.shape;  // the part of `before` that is also in `now`
  const auto lower = [](auto& value, const auto& to) { value = std::min(value, to); };
  lower(less.min_nodes, now.shape.min_nodes);
  lower(less.max_nodes, now.shape.max_nodes);
  lower(less.tasks, now.shape.tasks);
  lower(less.cpus_per_task, now.shape.cpus_per_task);
  lower(less.min_cpus_per_node, now.shape.min_cpus_per_node);
  lower(less.scratch_per_node, now.shape.scratch_per_node);
  lower(less.gpus_per_node, now.shape.gpus_per_node);
  for (const auto memory : {&JobShape::memory_per_node, &JobShape::memory_per_cpu})
    if (less.*memory && now.shape.*memory) lower(*(less.*memory), *(now.shape.*memory));
  return less != now.shape;
}

}  // namespace

void apply_event(MutableState& state, Instant at, const event::JobUpdated& e) {
  JobEdit job(state, e.job);
  charge(state, *job, at);  // charges the account for the time until now
  take_back(state, *job);
  if (e.account) {
    state.names.drop(job->account);
    job->account = state.names.add(*e.account);
  }
  if (e.account || e.reservation) job->respecified = true;
  if (e.reservation) job->window_named = at;
  // A class of the job's tenant does not exist in another tenant's queue.
  if (e.partition && *e.partition != class_of(state, *job).partition) job->class_priority = 0;
  if (e.requeue) job->may_requeue = *e.requeue;
  job->reshaped = job->reshaped || e.shape || e.requeue;
  if (e.partition || e.time_limit || e.unlimited_time || e.reservation || e.shape) {
    sched::ClassKey key = class_of(state, *job);
    if (e.shape) key.shape = *e.shape;
    if (e.reservation) key.reservation = *e.reservation;
    if (e.partition) key.partition = *e.partition;
    if (e.time_limit) key.time_limit = e.time_limit;
    if (e.unlimited_time) key.time_limit.reset();
    // The job counts as having waited in all the queues that it named.
    const bool elsewhere = key.partition != class_of(state, *job).partition &&
                           !(named_queue(*job, key.partition) && !e.queues);
    if (elsewhere || asks_for_more(class_of(state, *job), key)) job->asked_more = at;
    if (job->active) job->active->warned = false;
    set_class(state, *job, key);
  }
  if (e.queues) set_queues(*job, *e.queues);
  if (e.windows) set_windows(*job, *e.windows);
  if (e.partition || e.account) set_share(state, *job);
  if (e.nice) job->nice = *e.nice;
  if (e.site_factor) job->site_factor = *e.site_factor;
  if (e.priority) job->priority = e.priority;
  if (e.comment) job->comment = std::make_unique<std::string>(*e.comment);
  if (e.begin) {
    job->not_before = e.begin;
    job->backing_off = false;
    job->eligible = std::max(at, *e.begin);
  }
  if (e.max_running && job->tasks) {
    job->tasks->max_running = e.max_running;
    if (*e.max_running == 0) job->tasks->max_running.reset();  // 0 means no limit
  }
  if (e.name) {
    unindex_ended(state, *job);  // removes the job from the lists under its old name
    state.names.drop(job->name);
    job->name = state.names.add(*e.name);
    job->renamed = true;
    if (!job->is_element()) state.same_name[name_key(job->uid, job->name)].add(job->id);
    if (job->dependencies)
      for (const DependencyState& d : job->dependencies->list)
        if (d.status == DependencyStatus::open) add_dependent(state, *job, d.what);
  }
  if (job->active) set_aside(state, *job);
}

void apply_event(MutableState& state, Instant at, const event::DependencySettled& e) {
  JobEdit job(state, e.job);
  GANTRY_ASSERT(job->dependencies && e.index < job->dependencies->list.size(),
                "a known dependency");
  DependencyState& d = job->dependencies->list[e.index];
  GANTRY_ASSERT(d.status == DependencyStatus::open, "a dependency is settled once");
  d.status = e.met ? DependencyStatus::met : DependencyStatus::never;
  // A job may be named twice. It stays listed while another dependency on it is open.
  remove_dependent(state, *job, d.what);
  if (e.not_before)
    job->not_before = std::max(*e.not_before, job->not_before.value_or(*e.not_before));
  job->eligible = std::max(at, job->not_before.value_or(at));
}

void apply_event(MutableState& state, Instant, const event::TaskDependencySettled& e) {
  JobEdit job(state, e.array);
  GANTRY_ASSERT(job->tasks != nullptr, "an array");
  OrdinalSet& set = e.met ? job->tasks->corr_met : job->tasks->corr_never;
  set.insert(OrdinalSet::from_spans(e.ordinals));
}

void apply_event(MutableState& state, Instant at, const event::TasksCancelled& e) {
  JobEdit job(state, e.array);
  GANTRY_ASSERT(job->tasks != nullptr, "an array");
  ArrayState& tasks = *job->tasks;
  const OrdinalSet gone = OrdinalSet::from_spans(e.ordinals);
  GANTRY_ASSERT(gone.intersect(tasks.pending).count() == gone.count(), "only pending tasks");
  tasks.pending.erase(gone);
  tasks.done_bad.insert(gone);
  tasks.note_end(e.outcome, {});
  tasks.never_started -= gone.count();
  // Two entries with the same time would be one entry of the history.
  tasks.last_history = std::max(at, tasks.last_history + microseconds(1));
  state.unfolded.history.push_back(
      history_of_tasks(state, *job, gone, tasks.last_history, e.outcome, e.cause));
}

void apply_event(MutableState& state, Instant at, const event::TaskSplit& e) {
  {
    JobEdit array(state, e.array);
    GANTRY_ASSERT(array->tasks && array->tasks->pending.contains(e.ordinal), "a pending task");
    array->tasks->pending.erase(e.ordinal);
    if (array->tasks->pending.empty()) array->tasks->last_split = e.job;
  }
  const Job& array = state.jobs.at(e.array);
  Job& job = state.jobs.add(e.job);
  job.id = e.job;
  fill_element(state, job, array, e.ordinal);
  job.submitted = array.submitted;
  job.eligible = std::max(array.eligible, array.submitted);
  job.not_before = array.not_before;
  job.hold = array.hold;
  job.cause = array.cause;
  if (job.not_before && *job.not_before <= at) job.not_before.reset();
  index_job(state, job, nullptr);
  touch(state, job);
}

namespace {

// The entry of a job that is forgotten is at or near the front: after a restart, jobs that ended in
// one turn are in id order.
void take_from_ended(MutableState& state, JobId id) {
  const auto at = std::find_if(state.ended.begin(), state.ended.end(),
                               [&](const auto& entry) { return entry.second == id; });
  GANTRY_ASSERT(at != state.ended.end(), "a job that has ended");
  state.ended.erase(at);
}

}  // namespace

void apply_event(MutableState& state, Instant, const event::JobNoted& e) {
  JobEdit job(state, e.job);
  if (e.comment) job->comment = std::make_unique<std::string>(*e.comment);
  if (e.derived_exit || e.admin_comment || e.system_comment) {
    if (!job->notes) job->notes = std::make_unique<JobNotes>();
    if (e.derived_exit) job->notes->derived_exit = e.derived_exit;
    if (e.admin_comment) job->notes->admin_comment = *e.admin_comment;
    if (e.system_comment) job->notes->system_comment = *e.system_comment;
  }
  // Replaces the history row that was written when the job ended.
  if (job->phase == Phase::ended && !job->is_array())
    state.unfolded.history.push_back(history_of(state, *job));
}

void apply_event(MutableState& state, Instant, const event::HistoryReplaced& e) {
  state.unfolded.history.push_back({e.end, e.job, e.array, e.row});
}

void apply_event(MutableState& state, Instant at, const event::JobRevived& e) {
  JobEdit job(state, e.job);
  job->phase = must_move(Trigger::revive, job->phase);
  GANTRY_ASSERT(!job->is_array() && !job->is_element(), "a job of its own");
  take_from_ended(state, e.job);
  state.same_name[name_key(job->uid, job->name)].add(e.job);
  job->active.reset();
  job->started.reset();
  job->ended.reset();
  job->outcome.reset();
  job->exit = {};
  if (job->notes) job->notes->derived_exit.reset();
  if (job->backing_off) job->not_before.reset();
  job->backing_off = false;
  job->launch_failures = 0;
  ++job->restarts;
  job->eligible = std::max(at, job->not_before.value_or(at));
  job->hold = e.hold;
  job->cause = e.cause;
}

void apply_event(MutableState& state, Instant, const event::JobsForgotten& e) {
  for (const JobId id : e.jobs) {
    Job& job = state.jobs.at(id);
    take_from_ended(state, id);
    if (!job.fold_due) state.unfolded.jobs.push_back(id);
    unindex_job(state, job);
    state.jobs.remove(id);
    forget_triggers(state, id);
  }
}

}  // namespace gantry::core
