// Whether a job may start, apart from resources; see eligible.h.
#include "ctld/core/job/eligible.h"

#include <algorithm>

#include "ctld/core/resources/licenses.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/admission.h"

namespace gantry::core {
namespace {

bool per_task(const DependencyState& d) {
  return d.what.kind == DependencyKind::after_corr;
}

bool has_per_task(const Job& job) {
  return job.dependencies &&
         std::any_of(job.dependencies->list.begin(), job.dependencies->list.end(), per_task);
}

}  // namespace

Gate dependency_gate(const Job& job) {
  if (!job.dependencies) return Gate::open;
  bool open = false, met = false, never = false;
  for (const DependencyState& d : job.dependencies->list) {
    if (per_task(d)) continue;
    open |= d.status == DependencyStatus::open;
    met |= d.status == DependencyStatus::met;
    never |= d.status == DependencyStatus::never;
  }
  if (job.dependencies->any) {
    if (met) return Gate::open;
    return open || has_per_task(job) ? Gate::waiting : Gate::never;
  }
  if (never) return Gate::never;
  return open ? Gate::waiting : Gate::open;
}

OrdinalSet ready_tasks(const Job& array) {
  const ArrayState& tasks = *array.tasks;
  const Gate gate = dependency_gate(array);
  if (!has_per_task(array)) return gate == Gate::open ? tasks.pending : OrdinalSet{};
  if (array.dependencies->any && gate == Gate::open) return tasks.pending;
  if (!array.dependencies->any && gate != Gate::open) return {};
  return tasks.pending.intersect(tasks.corr_met);
}

std::optional<std::uint32_t> array_room(const State& state, const Job& job) {
  const Job& array = job.is_element() ? state.jobs.at(job.array) : job;
  if (!array.tasks || !array.tasks->max_running) return std::nullopt;
  const std::uint32_t limit = *array.tasks->max_running;
  return limit - std::min(limit, array.tasks->active);
}

std::optional<Instant> latest_start(const State& state, const Job& job) {
  if (!job.deadline || (job.is_array() && job.tasks->pending.empty())) return std::nullopt;
  return *job.deadline - class_of(state, job).least_limit().value_or(Duration{});
}

namespace {

// Like startable(), without regard to other components of a heterogeneous job.
std::uint32_t startable_alone(const State& state, const Job& job, Instant now) {
  if (job.phase != Phase::queued || job.hold != Hold::none) return 0;
  if (job.not_before && *job.not_before > now) return 0;
  if (const auto latest = latest_start(state, job); latest && *latest < now) return 0;
  if (verdict_of_admission(state, job)) return 0;
  const std::optional<std::uint32_t> room = array_room(state, job);
  if (room == 0u) return 0;
  const std::uint32_t licensed = licensed_starts(state, job);
  if (licensed == 0) return 0;
  if (!job.is_array()) return dependency_gate(job) == Gate::open ? 1 : 0;
  const ArrayState& tasks = *job.tasks;
  const std::uint32_t ready = job.dependencies ? ready_tasks(job).count() : tasks.pending.count();
  return std::min({ready, room.value_or(ready), licensed});
}

}  // namespace

std::uint32_t startable(const State& state, const Job& job, Instant now) {
  const std::uint32_t alone = startable_alone(state, job, now);
  const auto& het = class_of(state, job).het;
  for (std::uint32_t i = 0; alone > 0 && het && i < het->size; ++i) {
    const Job* part = state.jobs.find(het->member(i));
    if (part == nullptr || startable_alone(state, *part, now) == 0) return 0;
  }
  return alone;
}

}  // namespace gantry::core
