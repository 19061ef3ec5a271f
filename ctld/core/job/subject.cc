// Whether a job may start, apart from resources; and the reasons that belong to the job itself:
// held, dependencies, its begin time, the limit of its array, licences.
#include "ctld/core/job/subject.h"

#include <algorithm>

#include <fmt/core.h>

#include "ctld/core/job/holders.h"
#include "ctld/core/job/likely.h"
#include "ctld/core/resources/licenses.h"

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
std::uint32_t startable_alone(const Context& ctx, const Job& job) {
  if (job.phase != Phase::queued) return 0;
  if (const auto latest = latest_start(ctx.state, job); latest && *latest < ctx.now) return 0;
  std::uint32_t starts = job.is_array() ? job.tasks->pending.count() : 1;
  for (const Subject* one : subjects()) {
    if (one->check != nullptr && !one->looks_later && one->check(ctx, job)) return 0;
    if (one->tasks != nullptr && job.is_array()) starts = std::min(starts, one->tasks(ctx, job));
  }
  return starts;
}

}  // namespace

std::uint32_t startable(const Context& ctx, const Job& job) {
  const std::uint32_t alone = startable_alone(ctx, job);
  const auto& het = class_of(ctx.state, job).het;
  for (std::uint32_t i = 0; alone > 0 && het && i < het->size; ++i) {
    const Job* part = ctx.state.jobs.find(het->member(i));
    if (part == nullptr || startable_alone(ctx, *part) == 0) return 0;
  }
  return alone;
}

namespace {

std::string dependency_text(const DependencyState& d) {
  if (d.what.kind == DependencyKind::singleton) return "singleton";
  std::string out = fmt::format("{}:{}", enum_name(d.what.kind), d.what.job.value());
  if (d.what.array_task) out += fmt::format("_{}", *d.what.array_task);
  if (d.what.delay.us > 0) out += fmt::format("+{}", d.what.delay.seconds() / 60);
  return out;
}

std::string dependencies_text(const Job& job, DependencyStatus status) {
  std::string out;
  for (const DependencyState& d : job.dependencies->list) {
    if (d.status != status) continue;
    if (!out.empty()) out += job.dependencies->any ? '?' : ',';
    out += dependency_text(d);
  }
  return out;
}

std::optional<Verdict> check_hold(const Context&, const Job& job) {
  switch (job.hold) {
    case Hold::none: return std::nullopt;
    case Hold::user: return Verdict{Reason::held_user, 0, 0, {}};
    case Hold::admin: return Verdict{Reason::held_admin, 0, 0, job.cause};
    case Hold::special_exit: return Verdict{Reason::special_exit, 0, 0, job.cause};
    case Hold::launch_failed: return Verdict{Reason::launch_failed_held, 0, 0, job.cause};
  }
  return std::nullopt;
}

std::optional<Verdict> check_dependencies(const Context&, const Job& job) {
  if (!job.dependencies) return std::nullopt;
  const Gate gate = dependency_gate(job);
  if (gate == Gate::never)
    return Verdict{Reason::never_satisfied, 0, 0, dependencies_text(job, DependencyStatus::never)};
  const bool blocked = job.is_array() ? ready_tasks(job).empty() : gate != Gate::open;
  if (!blocked) return std::nullopt;
  if (job.is_array() && !job.tasks->corr_never.empty() &&
      job.tasks->pending.intersect(job.tasks->corr_never).count() == job.tasks->pending.count())
    return Verdict{Reason::never_satisfied, 0, 0, dependencies_text(job, DependencyStatus::open)};
  return Verdict{Reason::dependency, 0, 0, dependencies_text(job, DependencyStatus::open)};
}

std::uint32_t ready_of(const Context&, const Job& array) {
  return array.dependencies ? ready_tasks(array).count() : array.tasks->pending.count();
}

void say_dependencies(const WhyAsked& asked, const std::optional<Verdict>& verdict) {
  if (!verdict) return;
  asked.say(asked, *verdict);
  Holders(asked.ctx, asked.job, asked.sight).say_dependencies(asked.out);
}

std::optional<Verdict> check_begin(const Context& ctx, const Job& job) {
  if (!job.not_before || *job.not_before <= ctx.now) return std::nullopt;
  return Verdict{job.backing_off ? Reason::requeued : Reason::begin_time, job.not_before->us, 0,
                 job.backing_off ? job.cause : std::string()};
}

void say_begin(const WhyAsked& asked, const std::optional<Verdict>& verdict) {
  if (verdict) asked.say(asked, Verdict{verdict->reason, verdict->a, 0, {}});
  if (asked.job.backing_off && !asked.job.cause.empty())
    asked.out.push_back("the last start: " + asked.job.cause);
}

std::optional<Verdict> check_array(const Context& ctx, const Job& job) {
  if (array_room(ctx.state, job) != 0u) return std::nullopt;
  const Job& array = job.is_element() ? ctx.state.jobs.at(job.array) : job;
  return Verdict{Reason::array_task_limit, array.tasks->active, *array.tasks->max_running, {}};
}

std::uint32_t room_of_array(const Context& ctx, const Job& array) {
  return array_room(ctx.state, array).value_or(array.tasks->pending.count());
}

std::optional<Verdict> check_licenses(const Context& ctx, const Job& job) {
  return verdict_of_licenses(ctx.state, job);
}

std::uint32_t licensed(const Context& ctx, const Job& array) {
  return licensed_starts(ctx.state, array);
}

void say_licenses(const WhyAsked& asked, const std::optional<Verdict>& verdict) {
  if (!verdict) return;
  asked.say(asked, *verdict);
  Holders(asked.ctx, asked.job, asked.sight).say_license(verdict->subject, asked.out);
}

void note_runs(Context& ctx) {
  for (const auto& [at, id] : ctx.state.ended)
    if (const Job* job = ctx.state.jobs.find(id); job != nullptr) note_run(ctx, *job);
}

}  // namespace

const Subject kHold{.name = "hold", .check = check_hold};
const Subject kDependencies{.name = "dependencies",
                            .check = check_dependencies,
                            .tasks = ready_of,
                            .words = say_dependencies};
const Subject kBeginTime{.name = "begin time", .check = check_begin, .words = say_begin};
const Subject kArrayLimit{.name = "array limit", .check = check_array, .tasks = room_of_array};
const Subject kLicenses{
    .name = "licenses", .check = check_licenses, .tasks = licensed, .words = say_licenses};
const Subject kRunHabits{.name = "run habits", .started = note_runs};

}  // namespace gantry::core
