// Components of heterogeneous jobs; see het.h.
#include "ctld/core/job/het.h"

#include <fmt/core.h>

#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

// True if an end with this outcome ends all components.
bool takes_all(Outcome outcome) {
  return outcome == Outcome::node_fail || outcome == Outcome::launch_failed ||
         outcome == Outcome::preempted;
}

std::string cause_from(const State& state, const Job& other) {
  if (other.cause.starts_with("component "))
    return other.cause;  // the cause that came from a third component
  return other.cause.empty()
             ? fmt::format("component {} has ended", display_id(state, other))
             : fmt::format("component {}: {}", display_id(state, other), other.cause);
}

// How a placed component ends because of another one; nullopt if it continues.
std::optional<event::JobFinishing> end_with(const State& state, const Job& job, const Job& other) {
  const bool leader = class_of(state, other).het->offset == 0;
  event::JobFinishing e;
  e.job = job.id;
  e.cause = cause_from(state, other);
  if (other.phase == Phase::queued) {  // the other component was requeued and waits for the rest
    e.outcome = Outcome::node_fail;
    if (job.may_requeue) e.requeue = RequeueWhy::node_failure;
    return e;
  }
  if (other.phase == Phase::finishing) {
    const Finish& finish = *other.active->finish;
    if (!finish.requeue && !leader && !takes_all(finish.outcome)) return std::nullopt;
    e.outcome = finish.outcome;
    e.grace = finish.grace;
    e.for_own = finish.for_own;
    e.exit = finish.exit;
    if (job.may_requeue) e.requeue = finish.requeue;
    const NodeRun& batch = other.active->nodes.front();
    if (!e.exit) e.exit = batch.state == RunState::released ? batch.exit : ExitStatus{};
    return e;
  }
  if (other.phase != Phase::ended || (!leader && !takes_all(*other.outcome))) return std::nullopt;
  e.outcome = *other.outcome;
  e.exit = other.exit;
  return e;
}

bool follow_placed(Context& ctx, const Job& job) {
  std::optional<event::JobFinishing> e;
  each_sibling(ctx.state, job, [&](const Job& other) {
    if (!e) e = end_with(ctx.state, job, other);
  });
  // The leader may have ended so long ago that its record is gone.
  const HetPart& het = *class_of(ctx.state, job).het;
  if (!e && het.offset > 0 && ctx.state.jobs.find(het.leader) == nullptr) {
    e.emplace();
    e->job = job.id;
    e->exit = ExitStatus{};
    e->cause = "its heterogeneous job has ended";
  }
  if (!e) return false;
  const bool victim = e->grace.has_value();
  ctx.record(*e);
  if (victim) ctx.turn.changes.emplace_back(placed_view(ctx.state, ctx.state.jobs.at(job.id)));
  return true;
}

// A component that has ended never comes back, so the others would wait forever.
bool follow_queued(Context& ctx, const Job& job) {
  const HetPart& het = *class_of(ctx.state, job).het;
  for (std::uint32_t i = 0; i < het.size; ++i) {
    const Job* other = ctx.state.jobs.find(het.member(i));
    if (other != nullptr && other->phase != Phase::ended) continue;
    Outcome outcome = other != nullptr ? *other->outcome : Outcome::cancelled;
    if (job.restarts > 0) outcome = Outcome::node_fail;  // it cannot be started again
    end_job(ctx, job.id, outcome,
            other != nullptr ? cause_from(ctx.state, *other)
                             : fmt::format("component {}+{} has ended", het.leader.value(), i));
    return true;
  }
  return false;
}

}  // namespace

bool siblings_ready(const State& state, const Job& job) {
  bool ready = true;
  each_sibling(state, job, [&](const Job& other) {
    if (other.phase != Phase::starting) return;
    for (const NodeRun& run : other.active->nodes) ready = ready && run.state != RunState::launched;
  });
  return ready;
}

bool follow_siblings(Context& ctx, JobId id) {
  const Job& job = ctx.state.jobs.at(id);
  if (!class_of(ctx.state, job).het) return false;
  if (job.phase == Phase::queued) return follow_queued(ctx, job);
  if (job.phase == Phase::starting || job.phase == Phase::running) return follow_placed(ctx, job);
  return false;
}

void settle_siblings(Context& ctx, JobId id) {
  const Job* job = ctx.state.jobs.find(id);
  if (job == nullptr || !class_of(ctx.state, *job).het) return;
  const HetPart het = *class_of(ctx.state, *job).het;
  for (std::uint32_t i = 0; i < het.size; ++i) {
    const Job* other = i == het.offset ? nullptr : ctx.state.jobs.find(het.member(i));
    if (other == nullptr) continue;
    if (follow_siblings(ctx, other->id))
      continue;  // the other component was recorded as touched, so settle looks at it
    sync_queue(ctx, *other);
    act(ctx, *other);
    set_timer(ctx, *other);
  }
}

}  // namespace gantry::core
