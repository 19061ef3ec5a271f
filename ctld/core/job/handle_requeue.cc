// RequeueJobs: a placed job is ended on its nodes and waits again under the same id. Its exit does
// not matter any more, even if it ends by itself meanwhile (scripts requeue themselves and then
// exit). A job that has ended, and is still known, waits again too; its end stays in the history.
#include <fmt/core.h>

#include "common/proto/job_change.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenant_submit.h"

namespace gantry::core {
namespace {

Hold hold_of(const Context& ctx, const Identity& who, const Job& job, bool special) {
  if (special) return Hold::special_exit;
  return is_operator(ctx.state, who) && job.uid != who.owner.uid ? Hold::admin : Hold::user;
}

// Whether a job that has ended can wait once more; the limits of a submit apply to it again.
Result<void> may_revive(const Context& ctx, const Identity& who, const Job& job) {
  const std::string name = display_id(ctx.state, job);
  const auto refused = [&](std::string_view why) {
    return fail(ErrorCode::wrong_state, fmt::format("job {} has ended: {}", name, why));
  };
  if (job.is_array() || job.is_element())
    return refused("tasks of arrays are not put back into the queue; submit them again");
  if (class_of(ctx.state, job).het)
    return refused("components are not put back into the queue; submit the job again");
  const Partition& queue = ctx.state.partition(class_of(ctx.state, job).partition);
  if (queue.declared == nullptr)
    return refused(fmt::format("its partition {} is no longer there", queue.name));
  if (job.dependencies)
    for (const DependencyState& d : job.dependencies->list)
      if (d.status == DependencyStatus::open)
        return refused("nobody knows any more whether its dependencies are met; submit it again");
  const ControllerConfig& most = ctx.config.controller;
  if (ctx.state.counters.unended >= most.max_jobs)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the queue holds {} jobs, the most that controller.max_jobs allows",
                            ctx.state.counters.unended));
  const auto owner = ctx.state.users.find(job.uid);
  if (!is_operator(ctx.state, who) && owner != ctx.state.users.end() &&
      owner->second.unended >= most.max_user_jobs)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{} has {} jobs queued and active; controller.max_user_jobs allows {}",
                            owner->second.name, owner->second.unended, most.max_user_jobs));
  return check_return(ctx, job);
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::RequeueJobs&& message) {
  change_jobs(ctx, from, message.jobs, Trigger::requeue, [&](const Job& job) -> Result<void> {
    const auto& het = class_of(ctx.state, job).het;
    if (job.kind != JobKind::batch && !(het && job.may_requeue))
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is an allocation: only batch jobs can be requeued",
                              display_id(ctx.state, job)));
    if (!job.may_requeue)
      return fail(ErrorCode::wrong_state, fmt::format("job {} was submitted with --no-requeue",
                                                      display_id(ctx.state, job)));
    if (job.phase == Phase::ended) {
      if (auto r = may_go_on(ctx.state, from.who, job); !r) return r;
      if (auto r = may_revive(ctx, from.who, job); !r) return r;
      ctx.record(event::JobRevived{
          job.id, message.hold ? hold_of(ctx, from.who, job, message.special_exit) : Hold::none,
          fmt::format("requeued by {}", who_text(from.who))});
      return {};
    }
    if (job.active->finish && job.active->finish->outcome == Outcome::cancelled &&
        !job.active->finish->requeue)
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is being cancelled", display_id(ctx.state, job)));
    if (auto r = may_go_on(ctx.state, from.who, job); !r) return r;
    event::JobFinishing e;
    e.job = job.id;
    e.outcome = Outcome::cancelled;
    e.cause = fmt::format("requeued by {}", who_text(from.who));
    e.requeue = RequeueWhy::asked;
    if (message.hold) e.hold = hold_of(ctx, from.who, job, message.special_exit);
    ctx.record(e);
    return {};
  });
}

const Subject kRequeueMessages{.name = "requeue", .handlers = kHandlers<proto::RequeueJobs>};

}  // namespace gantry::core
