#include "ctld/core/job/likely.h"
#include "ctld/core/job/memory.h"
#include "ctld/core/plan_memory.h"

#include <algorithm>

#include "ctld/core/context.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// When this running job is likely to end; its limit if its user's habits are not known.
Instant likely_end(const Context& ctx, const Job& job, Instant limit_ends) {
  const auto limit = time_limit_of(ctx.state, job);
  const auto part = ctx.rt.job->habits.typical(job.uid, ctx.state.names.text(job.name));
  if (!limit || !part) return limit_ends;
  const Instant usual = limit_ends - Duration{limit->us / 1000 * (1000 - std::int64_t{*part})};
  if (usual > ctx.now) return usual;
  // The job has already run longer than usual, so halfway to its limit is as good as any guess.
  return ctx.now + Duration{std::max<std::int64_t>(0, (limit_ends - ctx.now).us / 2)};
}

}  // namespace

void note_run(Context& ctx, const Job& job) {
  const auto limit = time_limit_of(ctx.state, job);
  if (job.phase != Phase::ended || !job.started || !job.ended || !limit) return;
  const Outcome outcome = job.outcome.value_or(Outcome::cancelled);
  if (outcome != Outcome::completed && outcome != Outcome::failed && outcome != Outcome::timeout)
    return;
  const Duration stopped = job.active ? job.active->suspended_before : Duration{};
  ctx.rt.job->habits.note(job.uid, ctx.state.names.text(job.name),
                          *job.ended - *job.started - stopped, *limit);
}

std::optional<Instant> likely_start(const Context& ctx, const Job& job) {
  const auto it = ctx.rt.plan->expected.find(job.id);
  if (it == ctx.rt.plan->expected.end() || it->second.start <= ctx.now) return std::nullopt;
  const Instant latest = it->second.start;
  Instant by_limit{}, by_habit{};  // when the last job that blocks the start ends
  for (const NodeId id : ctx.state.partition(class_of(ctx.state, job).partition).nodes)
    for (const JobId running : ctx.state.node(id).jobs) {
      const Job& other = ctx.state.jobs.at(running);
      const auto end = other.active ? limit_end(ctx.state, other) : std::nullopt;
      if (!end || *end > latest || *end <= ctx.now) continue;
      by_limit = std::max(by_limit, *end);
      by_habit = std::max(by_habit, likely_end(ctx, other, *end));
    }
  if (by_limit == Instant{} || by_habit + minutes(1) > by_limit) return std::nullopt;
  return by_habit + (latest - by_limit);
}

}  // namespace gantry::core
