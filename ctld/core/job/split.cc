// Splitting array tasks off and changing named jobs; see split.h.
#include "ctld/core/job/split.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/proto/session.h"
#include "common/text/text.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

proto::ErrorReply wire(const Error& error) {
  return {static_cast<std::uint16_t>(error.code), error.message};
}

// The jobs that one selection stands for. Tasks that are named one by one are split off.
Result<std::vector<JobId>> jobs_of(Context& ctx, const Selected& s) {
  const Job& job = ctx.state.jobs.at(s.job);
  if (!job.is_array() || !s.tasks || s.tasks->count() == job.tasks->pending.count())
    return std::vector<JobId>{s.job};
  return split_tasks(ctx, s.job, *s.tasks);
}

void put_last_named_first(const State& state, const std::vector<proto::JobRef>& refs,
                          std::vector<Selected>& jobs) {
  std::unordered_map<JobId, std::size_t> by_id,
      by_array;  // position at which each job or array is first named
  for (std::size_t i = 0; i < refs.size(); ++i) {
    by_id.try_emplace(refs[i].id(), i);
    by_array.try_emplace(refs[i].job, i);
  }
  const auto place_in = [&](const auto& named, JobId id) {
    const auto it = named.find(id);
    return it == named.end() ? refs.size() : it->second;
  };
  const auto place = [&](const Selected& s) {
    const Job& job = state.jobs.at(s.job);
    const std::size_t own = place_in(by_id, job.id);
    return job.is_element() ? std::min(own, place_in(by_array, job.array)) : own;
  };
  std::vector<std::pair<std::size_t, Selected>> placed;
  placed.reserve(jobs.size());
  for (Selected& s : jobs) placed.emplace_back(place(s), std::move(s));
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  jobs.clear();
  for (auto& [at, s] : placed) jobs.push_back(std::move(s));
}

}  // namespace

Result<std::vector<JobId>> split_tasks(Context& ctx, JobId array, const OrdinalSet& tasks) {
  if (tasks.count() > kMaxSplit)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("{} tasks of array {} named one by one; at most {} are allowed: name the "
                    "whole array instead",
                    tasks.count(), array.value(), kMaxSplit));
  const Job& job = ctx.state.jobs.at(array);
  if (job.dependencies)
    for (const DependencyState& d : job.dependencies->list)
      if (d.status == DependencyStatus::open)
        return fail(ErrorCode::wrong_state,
                    fmt::format("array {} still waits for its dependencies: name the whole array "
                                "instead of single tasks",
                                array.value()));
  // An element does not check dependencies of its array any more, so no task may be split off whose
  // dependency can never be met.
  if (job.dependencies && ready_tasks(job).intersect(tasks).count() != tasks.count())
    return fail(ErrorCode::wrong_state,
                fmt::format("a dependency of array {} will never be met: name the whole array "
                            "instead of single tasks",
                            array.value()));
  std::vector<JobId> out;
  const OrdinalSet chosen = tasks;  // a copy: State changes below
  for (const Span span : chosen.spans())
    for (std::uint32_t ordinal = span.first; ordinal <= span.last; ++ordinal) {
      const JobId element(ctx.state.last_job.value() + 1);
      ctx.record(event::TaskSplit{array, ordinal, element});
      out.push_back(element);
    }
  return out;
}

void change_jobs(Context& ctx, const ClientRequest& from, const std::vector<proto::JobRef>& refs,
                 Trigger trigger, const std::function<Result<void>(const Job&)>& change,
                 Turns turns) {
  proto::JobsDone done;
  auto jobs_named = resolve(ctx.state, from.who, refs, done.not_active, May::change);
  if (turns == Turns::last_named_first) put_last_named_first(ctx.state, refs, jobs_named);
  refuse_others(ctx.state, from.who, done.not_active, done);
  for (const Selected& s : jobs_named) {
    const Job& job = ctx.state.jobs.at(s.job);
    if (!has_row(job)) continue;
    if (s.implied && (job.phase == Phase::ended || !next_phase(trigger, job.phase))) continue;
    if (job.phase == Phase::ended && !next_phase(trigger, job.phase)) {
      done.not_active.push_back(ref_of(ctx.state, job));
      continue;
    }
    if (const auto legal = may_move(trigger, job.phase, display_id(ctx.state, job)); !legal) {
      done.refused.push_back({ref_of(ctx.state, job), wire(legal.error())});
      continue;
    }
    const auto jobs = jobs_of(ctx, s);
    if (!jobs) {
      done.refused.push_back({ref_of(ctx.state, ctx.state.jobs.at(s.job)), wire(jobs.error())});
      continue;
    }
    for (const JobId id : *jobs) {
      const Job& one = ctx.state.jobs.at(id);
      const std::uint64_t counts = one.is_array() ? one.tasks->pending.count() : 1;
      const proto::JobRef name = ref_of(ctx.state, one);
      if (const auto changed = change(one); !changed) {
        done.refused.push_back({name, wire(changed.error())});
        continue;
      }
      done.changed += counts;
    }
  }
  ctx.reply(from, std::move(done));
}

}  // namespace gantry::core
