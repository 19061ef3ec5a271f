// CancelJobs: ends jobs, or signals running ones. Queued jobs and pending array tasks end at once.
// For running jobs the nodes are told, and the job ends when every node has released it.
#include <fmt/core.h>

#include <algorithm>

#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/proto/node_order.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/dependency.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// The jobs that the filter selects for this asker, in id order.
Result<std::vector<Selected>> chosen(const Context& ctx, const Identity& who,
                                     const proto::CancelJobs& message, proto::JobsDone& done) {
  const proto::JobFilter& f = message.filter;
  const bool by_condition = !f.users.empty() || !f.names.empty() || !f.partitions.empty() ||
                            !f.accounts.empty() || !f.nodes.empty() || !f.states.empty() ||
                            !f.tenants.empty();
  if (f.jobs.empty() && !by_condition && !message.all_mine)
    return fail(ErrorCode::invalid_argument,
                "say which jobs: by id, user, name, account, partition, node or state");
  ASSIGN(match, JobMatch::make(ctx.state, f));
  const auto mine = [&](const Job& job) { return !message.all_mine || job.uid == who.owner.uid; };
  std::vector<Selected> out;
  if (f.jobs.empty()) {
    walk_jobs(
        ctx.state, who, *match, JobId{},
        [&](const Job& job) {
          if (job.phase != Phase::ended && mine(job)) out.push_back({job.id, std::nullopt, false});
          return true;
        },
        May::change);
    return out;
  }
  for (Selected& s : resolve(ctx.state, who, f.jobs, done.not_active, May::change)) {
    const Job& job = ctx.state.jobs.at(s.job);
    if ((*match)(ctx.state, job) && mine(job)) out.push_back(std::move(s));
  }
  return out;
}

void cancel_tasks(Context& ctx, JobId array, const OrdinalSet& tasks, const std::string& cause,
                  proto::JobsDone& done) {
  if (tasks.empty()) return;
  done.changed += tasks.count();
  ctx.record(event::TasksCancelled{array, tasks.spans(), Outcome::cancelled, cause});
  settle_tasks(ctx, array, tasks, false);
}

// A heterogeneous job starts whole or not at all, so no component can be taken out while it waits.
// `chosen` is in id order.
bool is_part_of_waiting(const State& state, const Job& job, const std::vector<Selected>& chosen) {
  const auto& het = class_of(state, job).het;
  if (!het || het->offset == 0 || job.phase != Phase::queued) return false;
  const auto leader = std::lower_bound(chosen.begin(), chosen.end(), het->leader,
                                       [](const Selected& s, JobId id) { return s.job < id; });
  return leader == chosen.end() || leader->job != het->leader;
}

void cancel(Context& ctx, const Selected& s, const std::string& cause, proto::JobsDone& done) {
  const Job& job = ctx.state.jobs.at(s.job);
  if (job.is_array()) {
    if (job.phase == Phase::ended) return done.not_active.push_back(ref_of(ctx.state, job));
    const OrdinalSet tasks = s.tasks ? s.tasks->intersect(job.tasks->pending) : job.tasks->pending;
    return cancel_tasks(ctx, s.job, tasks, cause, done);
  }
  if (!next_phase(Trigger::cancel, job.phase)) {
    if (!s.implied) done.not_active.push_back(ref_of(ctx.state, job));
    return;
  }
  ++done.changed;
  end_job(ctx, s.job, Outcome::cancelled, cause);
}

void signal(Context& ctx, const Selected& s, const proto::CancelJobs& message,
            proto::JobsDone& done) {
  const Job& job = ctx.state.jobs.at(s.job);
  if (s.implied && !job.placed()) return;
  if (job.phase == Phase::ended) return done.not_active.push_back(ref_of(ctx.state, job));
  if (const auto legal = may_move(Trigger::signal, job.phase, display_id(ctx.state, job)); !legal) {
    done.refused.push_back(
        {ref_of(ctx.state, job),
         {static_cast<std::uint16_t>(legal.error().code), legal.error().message}});
    return;
  }
  if (job.active->suspended)
    return done.refused.push_back(
        {ref_of(ctx.state, job),
         {static_cast<std::uint16_t>(ErrorCode::wrong_state),
          fmt::format("job {} is suspended: resume it first", display_id(ctx.state, job))}});
  ++done.changed;
  for (const NodeRun& run : job.active->nodes) {
    const NodeId node = run.grant.node;
    if (run.state == RunState::released || ctx.link(node).session == 0) continue;
    if (message.scope == proto::SignalScope::batch_shell && &run != &job.active->nodes.front())
      continue;
    ctx.send(node, proto::SignalAttempt{
                       ctx.stamp(node), {job.id, job.attempt}, *message.signal, message.scope, {}});
  }
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::CancelJobs&& message) {
  proto::JobsDone done;
  if (message.signal && (*message.signal < 1 || *message.signal > 64))
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument, fmt::format("a signal is 1 to 64, not {}", *message.signal)});
  const auto jobs = chosen(ctx, from.who, message, done);
  if (!jobs) return refuse(ctx, from, jobs.error());
  if (!message.all_mine) refuse_others(ctx.state, from.who, done.not_active, done);
  const std::string cause =
      fmt::format("cancelled by {} (uid {})", who_text(from.who), from.who.owner.uid.value());
  for (const Selected& s : *jobs) {
    const Job& job = ctx.state.jobs.at(s.job);
    if (message.signal)
      signal(ctx, s, message, done);
    else if (is_part_of_waiting(ctx.state, job, *jobs))
      done.refused.push_back(
          {ref_of(ctx.state, job),
           {static_cast<std::uint16_t>(ErrorCode::wrong_state),
            fmt::format("component {} cannot be cancelled alone before its job has started; "
                        "cancel job {}",
                        display_id(ctx.state, job),
                        class_of(ctx.state, job).het->leader.value())}});
    else
      cancel(ctx, s, cause, done);
  }
  ctx.reply(from, std::move(done));
}

const Subject kCancelMessages{.name = "cancel", .handlers = kHandlers<proto::CancelJobs>};

}  // namespace gantry::core
