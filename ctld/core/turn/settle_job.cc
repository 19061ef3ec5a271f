// Consequences for one job: how the loss of one node ends the whole job, what follows when the last
// node is released, what follows from a dependency that cannot be met, and when an array is over.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/node_report.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/job/het.h"
#include "ctld/core/job/likely.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/dependency.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn/memory.h"

namespace gantry::core {
namespace {

constexpr Duration kBackoffFirst = seconds(30);  // pause after a failed start; doubles
constexpr Duration kBackoffMost = minutes(10);

// Why the job is requeued after a node's part ended with this cause; nullopt if it is not requeued.
std::optional<RequeueWhy> requeue_after(const Job& job, proto::ExitCause cause) {
  if (!job.may_requeue) return std::nullopt;
  switch (cause) {
    case proto::ExitCause::fenced:
    case proto::ExitCause::shim_lost:  // everything was killed: nothing of the attempt is left
    case proto::ExitCause::node_rebooted: return RequeueWhy::node_failure;
    case proto::ExitCause::launch_failed: return RequeueWhy::launch_failure;
    default: return std::nullopt;
  }
}

Outcome outcome_of(proto::ExitCause cause, const ExitStatus& exit, bool batch_node) {
  switch (cause) {
    case proto::ExitCause::exited:
      if (!batch_node) return Outcome::node_fail;
      return exit == ExitStatus{} ? Outcome::completed : Outcome::failed;
    case proto::ExitCause::out_of_memory: return Outcome::out_of_memory;
    case proto::ExitCause::launch_failed: return Outcome::launch_failed;
    case proto::ExitCause::refused: return Outcome::failed;  // the job would fail on every node
    case proto::ExitCause::ordered:
    case proto::ExitCause::shim_lost:
    case proto::ExitCause::fenced:
    case proto::ExitCause::node_rebooted: return Outcome::node_fail;
  }
  return Outcome::node_fail;
}

std::string cause_text(const std::string& node, const NodeRun& run, bool batch_node) {
  const bool plain = run.cause == proto::ExitCause::exited && batch_node;
  if (plain) return run.message;
  const std::string what = run.message.empty() ? std::string(enum_name(run.cause)) : run.message;
  return what.find(node) == std::string::npos ? fmt::format("{}: {}", node, what) : what;
}

// True if the job continues without this node: it has released the node, or it has --no-kill and
// the node was lost. It needs the node that runs its script, and at least one node.
bool goes_on_without(const Job& job, const NodeRun& run) {
  if (run.given_back) return true;
  if (!job.no_kill || job.active->all_released()) return false;
  if (job.kind == JobKind::batch && &run == &job.active->nodes.front()) return false;
  return run.cause == proto::ExitCause::fenced || run.cause == proto::ExitCause::node_rebooted ||
         run.cause == proto::ExitCause::shim_lost;
}

// If the job is not finishing yet, the first node whose part ended decides how the job ends.
bool decide_end(Context& ctx, const Job& job) {
  const auto& nodes = job.active->nodes;
  const auto gone = std::find_if(nodes.begin(), nodes.end(), [&](const NodeRun& run) {
    return run.state == RunState::released && !goes_on_without(job, run);
  });
  if (gone == nodes.end()) return false;
  const bool batch_node = gone == nodes.begin();
  event::JobFinishing e;
  e.job = job.id;
  e.outcome = outcome_of(gone->cause, gone->exit, batch_node);
  e.cause = cause_text(ctx.state.node(gone->grant.node).name, *gone, batch_node);
  e.requeue = requeue_after(job, gone->cause);
  if (!batch_node) e.exit = ExitStatus{};  // the controller ended the batch script
  ctx.record(e);
  return true;
}

void requeue(Context& ctx, const Job& job) {
  const Finish& finish = *job.active->finish;
  event::JobRequeued e;
  e.job = job.id;
  e.why = *finish.requeue;
  e.hold = finish.hold.value_or(Hold::none);
  e.cause = job.cause;
  if (e.why == RequeueWhy::launch_failure) {
    const std::uint32_t doublings = std::min(job.launch_failures, 10u);
    e.not_before = ctx.now + std::min(kBackoffFirst * (std::int64_t{1} << doublings), kBackoffMost);
  }
  if (job.restarts + 1 >= ctx.config.controller.max_requeues && e.hold == Hold::none) {
    e.hold = Hold::launch_failed;
    e.cause = fmt::format("requeued {} times; last: {}", job.restarts + 1,
                          job.cause.empty() ? "asked for" : job.cause);
  }
  ctx.rt.turn->waits_since[job.id] = ctx.now;
  ctx.record(e);
}

// True if the node can no longer report whether its part of the job started.
bool lost_sight(const NodeRun& run) {
  return run.cause == proto::ExitCause::fenced || run.cause == proto::ExitCause::node_rebooted ||
         run.cause == proto::ExitCause::shim_lost || run.perhaps_over;
}

// The end of a job whose start was given up although it had run: its real end counts or, if it may
// run only once, node_fail. It may also have run on a node that was lost before it could report.
std::optional<Outcome> ran_after_all(const Job& job) {
  if (job.active->finish->requeue != RequeueWhy::start_timeout) return std::nullopt;
  const auto& nodes = job.active->nodes;
  if (!job.may_requeue && std::any_of(nodes.begin(), nodes.end(), lost_sight))
    return Outcome::node_fail;
  if (!job.started) return std::nullopt;
  const NodeRun& batch = nodes.front();
  if (batch.cause == proto::ExitCause::exited || batch.cause == proto::ExitCause::out_of_memory)
    return outcome_of(batch.cause, batch.exit, true);
  return job.may_requeue ? std::nullopt : std::optional(Outcome::node_fail);
}

// A controller that was stopped, or could not hear the node, may end a job for its time limit or
// deadline although it had ended in time. Then the job's own end counts: the node reports when it
// ended, and that no order ended it.
std::optional<Outcome> ended_in_time(const State& state, const Job& job) {
  const NodeRun& batch = job.active->nodes.front();
  if (batch.cause != proto::ExitCause::exited && batch.cause != proto::ExitCause::out_of_memory)
    return std::nullopt;
  std::optional<Instant> until;
  if (job.active->finish->outcome == Outcome::timeout) until = limit_end(state, job);
  if (job.active->finish->outcome == Outcome::deadline) until = job.deadline;
  if (!until || !job.started || !batch.ended || *batch.ended >= *until) return std::nullopt;
  return outcome_of(batch.cause, batch.exit, true);
}

void count_end(Context& ctx, Outcome outcome) {
  ++ctx.rt.stats.ended;
  switch (outcome) {
    case Outcome::completed: ++ctx.rt.stats.completed; break;
    case Outcome::cancelled: ++ctx.rt.stats.cancelled; break;
    default: ++ctx.rt.stats.failed; break;
  }
}

// Ends or requeues the job when its last node is released.
bool close_attempt(Context& ctx, const Job& job) {
  if (!job.active->all_released()) return false;
  const Finish& finish = *job.active->finish;
  if (const auto outcome = ran_after_all(job)) {
    ctx.record(event::JobEnded{job.id, *outcome, job.active->nodes.front().exit, job.cause});
    count_end(ctx, *outcome);
    return true;
  }
  if (finish.requeue) {
    requeue(ctx, job);
    return true;
  }
  if (const auto outcome = ended_in_time(ctx.state, job)) {
    const NodeRun& batch = job.active->nodes.front();
    ctx.record(event::JobEnded{job.id, *outcome, batch.exit,
                               cause_text(ctx.state.node(batch.grant.node).name, batch, true)});
    count_end(ctx, *outcome);
    return true;
  }
  const ExitStatus exit = finish.exit.value_or(job.active->nodes.front().exit);
  const Outcome outcome = finish.outcome;
  ctx.record(event::JobEnded{job.id, outcome, exit, job.cause});
  count_end(ctx, outcome);
  return true;
}

// Cancels tasks whose aftercorr counterpart failed, or a job whose dependencies cannot be met.
bool cancel_never(Context& ctx, const Job& job) {
  if (!job.dependencies || !job.dependencies->cancel_on_never) return false;
  constexpr auto kCause = "DependencyNeverSatisfied: a dependency can never be met";
  const Gate gate = dependency_gate(job);
  if (gate == Gate::never) {
    if (job.is_array() && job.tasks->pending.empty()) return false;
    end_job(ctx, job.id, Outcome::cancelled, kCause);
    return true;
  }
  if (!job.is_array() || job.tasks->corr_never.empty()) return false;
  if (job.dependencies->any) {
    const bool open = std::any_of(
        job.dependencies->list.begin(), job.dependencies->list.end(), [](const DependencyState& d) {
          return d.what.kind != DependencyKind::after_corr && d.status != DependencyStatus::never;
        });
    if (open) return false;
  }
  const OrdinalSet never = job.tasks->pending.intersect(job.tasks->corr_never);
  if (never.empty()) return false;
  ctx.record(event::TasksCancelled{job.id, never.spans(), Outcome::cancelled, kCause});
  settle_tasks(ctx, job.id, never, false);
  return true;
}

}  // namespace

bool draw_consequences(Context& ctx, JobId id) {
  const Job& job = ctx.state.jobs.at(id);
  switch (job.phase) {
    case Phase::queued:
      if (cancel_never(ctx, job)) return true;
      if (job.is_array() && job.tasks->complete()) {
        ctx.record(event::JobEnded{id, job.tasks->worst, job.tasks->worst_exit, job.cause});
        return true;
      }
      return follow_siblings(ctx, id);
    case Phase::starting:
    case Phase::running: return decide_end(ctx, job) || follow_siblings(ctx, id);
    case Phase::finishing:
      if (!close_attempt(ctx, job)) return false;
      note_run(ctx, job);
      return true;
    case Phase::ended:
    case Phase::suspended: return false;
  }
  return false;
}

void end_job(Context& ctx, JobId id, Outcome outcome, std::string cause) {
  const Job& job = ctx.state.jobs.at(id);
  switch (job.phase) {
    case Phase::queued:
      if (job.is_array()) {
        if (job.tasks->pending.empty()) return;
        const OrdinalSet all = job.tasks->pending;
        if (outcome == Outcome::cancelled) ctx.rt.stats.cancelled += all.count();
        ctx.record(event::TasksCancelled{id, all.spans(), outcome, std::move(cause)});
        settle_tasks(ctx, id, all, false);
      } else {
        ctx.record(event::JobEnded{id, outcome, {}, std::move(cause)});
        count_end(ctx, outcome);
      }
      return;
    case Phase::starting:
    case Phase::running:
      ctx.record(event::JobFinishing{id, outcome, {}, std::move(cause), {}, {}});
      return;
    case Phase::finishing:  // an end by request replaces a requeue
      if (job.active->finish->requeue)
        ctx.record(event::JobFinishing{id, outcome, {}, std::move(cause), {}, {}});
      return;
    case Phase::ended:
    case Phase::suspended: return;
  }
}

}  // namespace gantry::core
