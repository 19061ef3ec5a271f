// SuspendJobs and ResumeJobs: a running job is stopped where it is on all its nodes, and later
// continues from there. It keeps its resources. If it is ended meanwhile, its nodes continue it
// first.
#include <fmt/core.h>

#include "common/proto/job_change.h"
#include "common/proto/node_report.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/memory.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {

void sync_suspension(Context& ctx, const Job& job) {
  const bool is = job.active && job.active->suspended;
  const bool told = ctx.rt.job->suspended.contains(job.id);
  if (is == told) return;
  if (is)
    ctx.rt.job->suspended.insert(job.id);
  else
    ctx.rt.job->suspended.erase(job.id);
  if (!ctx.rt.running || !job.placed()) return;
  ctx.turn.changes.emplace_back(
      sched::JobLimitChanged{job.id, placed_view(ctx.state, job).ends_by});
  ctx.turn.schedule = true;
}

static void handle(Context& ctx, const ClientRequest& from, proto::SuspendJobs&& message) {
  change_jobs(ctx, from, message.jobs, Trigger::suspend, [&](const Job& job) -> Result<void> {
    if (job.active->suspended)
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is suspended already", display_id(ctx.state, job)));
    for (const NodeRun& run : job.active->nodes) {
      const Node& node = ctx.state.node(run.grant.node);
      for (const std::string& layer : node.facts.layers_off)
        if (layer.starts_with(proto::kNoSuspension))
          return fail(ErrorCode::unsupported,
                      fmt::format("node {} cannot stop a job: {}", node.name,
                                  layer.substr(proto::kNoSuspension.size())));
    }
    ctx.record(event::JobSuspended{job.id});
    return {};
  });
}

static void handle(Context& ctx, const ClientRequest& from, proto::ResumeJobs&& message) {
  change_jobs(ctx, from, message.jobs, Trigger::resume, [&](const Job& job) -> Result<void> {
    if (!job.active->suspended)
      return fail(ErrorCode::wrong_state,
                  fmt::format("job {} is not suspended", display_id(ctx.state, job)));
    ctx.record(event::JobResumed{job.id});
    return {};
  });
}

const Subject kSuspendMessages{.name = "suspend",
                               .handlers = kHandlers<proto::SuspendJobs, proto::ResumeJobs>};

}  // namespace gantry::core
