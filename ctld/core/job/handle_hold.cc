// HoldJobs and ReleaseJobs. Only an administrator can release an administrator's hold. The user can
// release a user's hold, and a hold after too many requeues.
#include <fmt/core.h>

#include "common/proto/job_change.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/state/display_id.h"
#include "ctld/core/state/job.h"
#include "ctld/core/state/moves.h"

namespace gantry::core {

static void handle(Context& ctx, const ClientRequest& from, proto::HoldJobs&& message) {
  const Hold hold = is_operator(ctx.state, from.who) ? Hold::admin : Hold::user;
  change_jobs(ctx, from, message.jobs, Trigger::hold, [&](const Job& job) -> Result<void> {
    // An administrator's hold of an own job counts as a user's hold, so Hold::admin always means a
    // hold by somebody else.
    const Hold kind = hold == Hold::admin && job.uid == from.who.owner.uid ? Hold::user : hold;
    if (job.hold == Hold::admin || job.hold == kind) return {};
    const std::string cause =
        kind == Hold::admin ? fmt::format("held by {}", from.who.owner.user) : std::string();
    ctx.record(event::JobHeld{job.id, kind, cause});
    return {};
  });
}

static void handle(Context& ctx, const ClientRequest& from, proto::ReleaseJobs&& message) {
  change_jobs(ctx, from, message.jobs, Trigger::release, [&](const Job& job) -> Result<void> {
    if (auto r = may_go_on(ctx.state, from.who, job); !r) return r;
    if (job.hold == Hold::admin && !is_operator(ctx.state, from.who))
      return fail(ErrorCode::permission_denied,
                  fmt::format("job {} is held by an administrator, who alone can release it",
                              display_id(ctx.state, job)));
    if (job.hold != Hold::none || job.backing_off) ctx.record(event::JobReleased{job.id});
    return {};
  });
}

const Subject kHoldMessages{.name = "hold",
                            .handlers = kHandlers<proto::HoldJobs, proto::ReleaseJobs>};

}  // namespace gantry::core
