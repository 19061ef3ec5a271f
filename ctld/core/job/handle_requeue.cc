// RequeueJobs: a placed job is ended on its nodes and waits again under the same id. Its exit does
// not matter any more, even if it ends by itself meanwhile (scripts requeue themselves and then
// exit).
#include <fmt/core.h>

#include "ctld/core/access/authorise.h"
#include "ctld/core/handlers.h"
#include "ctld/core/job/split.h"

namespace gantry::core {

void handle(Context& ctx, const ClientRequest& from, proto::RequeueJobs&& message) {
  change_jobs(ctx, from, message.jobs, Trigger::requeue, [&](const Job& job) -> Result<void> {
    const auto& het = class_of(ctx.state, job).het;
    if (job.kind != JobKind::batch && !(het && job.may_requeue))
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is an allocation: only batch jobs can be requeued",
                              display_id(ctx.state, job)));
    if (!job.may_requeue)
      return fail(ErrorCode::wrong_state, fmt::format("job {} was submitted with --no-requeue",
                                                      display_id(ctx.state, job)));
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
    if (message.hold)
      e.hold = is_operator(ctx.state, from.who) && job.uid != from.who.owner.uid ? Hold::admin
                                                                                 : Hold::user;
    ctx.record(std::move(e));
    return {};
  });
}

}  // namespace gantry::core
