// NotifyJobs: a line in the standard error of running jobs, and to whoever waits for an allocation.
// The core keeps nothing, so the line is lost if the node that should write it is lost, or while
// salloc has no connection.
#include <fmt/core.h>

#include "common/proto/job_change.h"
#include "common/proto/node_order.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

static void handle(Context& ctx, const ClientRequest& from, proto::NotifyJobs&& message) {
  if (message.text.empty() || message.text.size() > proto::NotifyJobs::kMaxText)
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument,
         fmt::format("a message is one line of 1 to {} bytes", proto::NotifyJobs::kMaxText)});
  change_jobs(ctx, from, message.jobs, Trigger::signal, [&](const Job& job) -> Result<void> {
    const NodeId node = job.active->nodes.front().grant.node;
    if (ctx.link(node).session == 0)
      return fail(ErrorCode::unavailable,
                  fmt::format("node {} is not connected", ctx.state.node(node).name));
    if (job.kind == JobKind::allocation) tell_waits(ctx, job.id, message.text);
    ctx.send(node, proto::TellAttempt{ctx.stamp(node), {job.id, job.attempt}, message.text});
    return {};
  });
}

const Subject kNotifyMessages{.name = "notify", .handlers = kHandlers<proto::NotifyJobs>};

}  // namespace gantry::core
