// Dependencies between jobs; see dependency.h.
#include "ctld/core/job/submit/dependency.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "common/limits.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

Settled delayed(Instant since, Duration delay, Instant now) {
  Settled out{true, {}};
  if (delay.us > 0 && since + delay > now) out.not_before = since + delay;
  return out;
}

std::optional<Settled> settled_by_end(DependencyKind kind, bool ok) {
  switch (kind) {
    case DependencyKind::after:
    case DependencyKind::after_any: return Settled{true, {}};
    case DependencyKind::after_ok: return Settled{ok, {}};
    case DependencyKind::after_notok: return Settled{!ok, {}};
    case DependencyKind::after_corr:
    case DependencyKind::singleton: break;
  }
  return std::nullopt;
}

std::optional<Settled> settled_by_job(const Job& job, const Dependency& d, Instant now) {
  if (d.kind == DependencyKind::after) {
    if (job.started) return delayed(*job.started, d.delay, now);
    if (job.ended) return delayed(*job.ended, d.delay, now);
    if (job.started_once) return delayed(now, d.delay, now);
    return std::nullopt;
  }
  if (job.phase != Phase::ended) return std::nullopt;
  return settled_by_end(d.kind, job.outcome == Outcome::completed);
}

std::optional<Settled> settled_by_array(const Job& array, const Dependency& d, Instant now) {
  const ArrayState& tasks = *array.tasks;
  const bool ended = array.phase == Phase::ended;
  if (d.kind == DependencyKind::after)
    return tasks.never_started == 0 || ended ? std::optional(delayed(now, d.delay, now))
                                             : std::nullopt;
  if (d.kind == DependencyKind::after_ok && !tasks.done_bad.empty()) return Settled{false, {}};
  if (!ended) return std::nullopt;
  return settled_by_end(d.kind, tasks.done_bad.empty());
}

std::optional<Settled> settled_by_task(const State& state, const Job& array, const Dependency& d,
                                       Instant now) {
  const auto ordinal = array.tasks->indexes.ordinal_of(*d.array_task);
  if (!ordinal) return Settled{false, {}};
  if (const auto it = array.tasks->elements.find(*ordinal); it != array.tasks->elements.end())
    return settled_by_job(state.jobs.at(it->second), d, now);
  if (array.tasks->done_ok.contains(*ordinal)) return settled_by_end(d.kind, true);
  if (array.tasks->done_bad.contains(*ordinal)) return settled_by_end(d.kind, false);
  return std::nullopt;
}

bool singleton_met(const State& state, Uid uid, NameId name, JobId self) {
  const auto it = state.same_name.find(name_key(uid, name));
  if (it == state.same_name.end()) return true;
  for (const JobId id : it->second.ids()) {
    if (id >= self) return true;
    const Job* other = state.jobs.find(id);
    if (other != nullptr && other->phase != Phase::ended && other->name == name) return false;
  }
  return true;
}

Result<void> resolve_task_wise(const JobSpec& spec, const Job& target, Dependency& d,
                               DependencyStart& out) {
  if (!spec.array || !target.is_array() || d.array_task) {
    d.kind = DependencyKind::after_ok;
    return {};
  }
  for (const Dependency& other : spec.dependencies)
    if (&other != &d && other.kind == DependencyKind::after_corr)
      return fail(ErrorCode::unsupported, "a job may have one aftercorr dependency");
  const ArrayIndexes ours(spec.array->ranges);
  const ArrayIndexes& theirs = target.tasks->indexes;
  if (theirs.select(spec.array->ranges).count() != ours.count())
    return fail(ErrorCode::invalid_argument,
                fmt::format("aftercorr:{}: some index of this array is not in array {} ({})",
                            d.job.value(), d.job.value(), format_index_ranges(theirs.ranges())));
  out.corr_met = ours.select(theirs.ranges_of(target.tasks->done_ok));
  out.corr_never = ours.select(theirs.ranges_of(target.tasks->done_bad));
  return {};
}

}  // namespace

std::optional<Settled> settled(const State& state, const Dependency& d, Instant now) {
  const Job* target = state.jobs.find(d.job);
  if (target == nullptr) return Settled{false, {}};
  if (d.array_task && target->is_array()) return settled_by_task(state, *target, d, now);
  if (target->is_array()) return settled_by_array(*target, d, now);
  return settled_by_job(*target, d, now);
}

Result<DependencyStart> resolve_dependencies(const Context& ctx, const Identity& who,
                                             JobSpec& spec) {
  DependencyStart out;
  if (spec.dependencies.size() > kMaxDependencies)
    return fail(ErrorCode::limit_exceeded, fmt::format("{} dependencies; at most {} are allowed",
                                                       spec.dependencies.size(), kMaxDependencies));
  for (Dependency& d : spec.dependencies) {
    if (d.delay.us < 0 || d.delay > hours(24 * kMaxDurationDays) ||
        (d.delay.us > 0 && d.kind != DependencyKind::after))
      return fail(ErrorCode::invalid_argument,
                  "only after:JOB may have a delay, of 0 or more minutes");
    if (d.kind == DependencyKind::singleton) {
      const auto name = ctx.state.names.find(spec.name);
      const bool met = !name || singleton_met(ctx.state, who.owner.uid, *name,
                                              JobId(ctx.state.last_job.value() + 1));
      out.statuses.push_back(met ? DependencyStatus::met : DependencyStatus::open);
      continue;
    }
    const Job* target = ctx.state.jobs.find(d.job);
    if (target == nullptr || !may(May::see, ctx.state, who, *target))
      return fail(
          ErrorCode::not_found,
          fmt::format("dependency {}:{}: there is no such job (ended ones are known for {} s)",
                      enum_name(d.kind), d.job.value(),
                      ctx.config.controller.min_job_age.seconds()));
    if (target->is_element()) {  // named by its own id; listed as a task of the array, like 12_3
      d.array_task = target->task;
      d.job = target->array;
      target = &ctx.state.jobs.at(d.job);
    } else if (d.array_task &&
               (!target->is_array() || !target->tasks->indexes.ordinal_of(*d.array_task))) {
      return fail(ErrorCode::not_found,
                  fmt::format("dependency {}:{}_{}: the job has no such task", enum_name(d.kind),
                              d.job.value(), *d.array_task));
    }
    if (d.kind == DependencyKind::after_corr) TRY(resolve_task_wise(spec, *target, d, out));
    if (d.kind == DependencyKind::after_corr) {
      out.statuses.push_back(target->phase == Phase::ended ? DependencyStatus::met
                                                           : DependencyStatus::open);
      continue;
    }
    const auto now = settled(ctx.state, d, ctx.now);
    out.statuses.push_back(!now       ? DependencyStatus::open
                           : now->met ? DependencyStatus::met
                                      : DependencyStatus::never);
    if (now && now->not_before)
      out.not_before = std::max(*now->not_before, out.not_before.value_or(*now->not_before));
  }
  return out;
}

namespace {

// The ids, each once, in a copy: looking at a job changes the list.
std::vector<JobId> once(const std::multiset<JobId>& waiting) {
  std::vector<JobId> out;
  std::unique_copy(waiting.begin(), waiting.end(), std::back_inserter(out));
  return out;
}

// One waiting job re-examines its open dependencies on this target.
void look_again(Context& ctx, JobId waiting, const DependencyKey& key) {
  const Job* job = ctx.state.jobs.find(waiting);
  if (job == nullptr || job->phase != Phase::queued || !job->dependencies) return;
  for (std::uint32_t i = 0; i < job->dependencies->list.size(); ++i) {
    const DependencyState& d = job->dependencies->list[i];
    if (d.status != DependencyStatus::open || d.what.job != key.job ||
        d.what.array_task != key.task)
      continue;
    if (d.what.kind == DependencyKind::after_corr) {
      const Job* array = ctx.state.jobs.find(key.job);
      if (array != nullptr && array->phase != Phase::ended) continue;
      if (array != nullptr) {  // the array's last tasks may not be settled yet
        settle_tasks(ctx, key.job, OrdinalSet(array->tasks->done_ok), true);
        settle_tasks(ctx, key.job, OrdinalSet(array->tasks->done_bad), false);
      }
      ctx.record(event::DependencySettled{waiting, i, true, {}});
      continue;
    }
    if (const auto now = settled(ctx.state, d.what, ctx.now))
      ctx.record(event::DependencySettled{waiting, i, now->met, now->not_before});
  }
}

constexpr std::uint32_t kFewTasks = 16;

// Keys of dependencies on exactly one of these tasks. The keys of one array are neighbours. A few
// tasks are looked up one by one, so that the end of each task does not cost a look at all keys.
std::vector<DependencyKey> keys_of_tasks(const State& state, JobId id, const OrdinalSet& tasks) {
  std::vector<DependencyKey> keys;
  const ArrayIndexes& indexes = state.jobs.at(id).tasks->indexes;
  if (tasks.count() <= kFewTasks) {
    for (const Span span : tasks.spans())
      for (std::uint32_t ordinal = span.first; ordinal <= span.last; ++ordinal) {
        const DependencyKey key{id, indexes.index_of(ordinal)};
        if (state.dependents.contains(key)) keys.push_back(key);
      }
    return keys;
  }
  for (auto at = state.dependents.upper_bound({id, std::nullopt});
       at != state.dependents.end() && at->first.job == id; ++at) {
    const auto ordinal = indexes.ordinal_of(*at->first.task);
    if (ordinal && tasks.contains(*ordinal)) keys.push_back(at->first);
  }
  return keys;
}

void settle_singletons(Context& ctx, Uid uid, NameId name) {
  const auto it = ctx.state.singletons.find(name_key(uid, name));
  if (it == ctx.state.singletons.end()) return;
  const JobId first = *it->second.begin();
  const Job* waiting = ctx.state.jobs.find(first);
  if (waiting == nullptr || !singleton_met(ctx.state, waiting->uid, waiting->name, first)) return;
  for (std::uint32_t i = 0; i < waiting->dependencies->list.size(); ++i) {
    const DependencyState& d = waiting->dependencies->list[i];
    if (d.what.kind == DependencyKind::singleton && d.status == DependencyStatus::open)
      ctx.record(event::DependencySettled{first, i, true, {}});
  }
}

}  // namespace

void settle_dependents(Context& ctx, JobId id) {
  const Job* job = ctx.state.jobs.find(id);
  if (job == nullptr || (job->phase == Phase::queued && !job->is_array() && !job->started_once))
    return;
  const DependencyKey key = dependency_key(*job);
  if (const auto it = ctx.state.dependents.find(key); it != ctx.state.dependents.end()) {
    for (const JobId w : once(it->second)) look_again(ctx, w, key);
  }
  if (job->phase != Phase::ended) return;
  if (!job->is_element())
    settle_singletons(ctx, job->uid, job->name);
  else
    settle_tasks(ctx, job->array, OrdinalSet::from_spans({{job->ordinal, job->ordinal}}),
                 job->outcome == Outcome::completed);
}

void settle_named(Context& ctx, Uid uid, std::string_view name) {
  if (const auto id = ctx.state.names.find(name)) settle_singletons(ctx, uid, *id);
}

void settle_tasks(Context& ctx, JobId id, const OrdinalSet& tasks, bool ok) {
  for (const DependencyKey& key : keys_of_tasks(ctx.state, id, tasks)) {
    const auto at = ctx.state.dependents.find(key);
    if (at == ctx.state.dependents.end()) continue;  // this dependency was settled with another key
    for (const JobId w : once(at->second)) look_again(ctx, w, key);
  }

  const auto it = ctx.state.dependents.find(DependencyKey{id, std::nullopt});
  if (it == ctx.state.dependents.end()) return;
  const std::vector<JobId> waiting = once(it->second);
  const std::vector<IndexRange> indexes = ctx.state.jobs.at(id).tasks->indexes.ranges_of(tasks);
  for (const JobId w : waiting) {
    const Job* job = ctx.state.jobs.find(w);
    if (job == nullptr || !job->is_array() || job->phase == Phase::ended) continue;
    for (const DependencyState& d : job->dependencies->list) {
      if (d.what.kind != DependencyKind::after_corr || d.what.job != id) continue;
      OrdinalSet ours = job->tasks->indexes.select(indexes);
      ours.erase(job->tasks->corr_met);
      ours.erase(job->tasks->corr_never);
      if (ours.empty()) break;
      ctx.record(event::TaskDependencySettled{w, ours.spans(), ok});
      break;
    }
  }
}

}  // namespace gantry::core
