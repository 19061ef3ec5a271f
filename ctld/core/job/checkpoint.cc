#include "ctld/core/job/checkpoint.h"

#include <algorithm>
#include <set>

#include "common/proto/attempt.h"
#include "common/proto/job_change.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/split.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

// Each heartbeat reports the same touch of the file again, at slightly different times, because
// delays differ.
constexpr Duration kSameTouch = seconds(2);

}  // namespace

void note_checkpoints(Context& ctx, NodeId node,
                      const std::vector<proto::AttemptCheckpoint>& checkpoints, Instant sent) {
  std::set<JobId> noted;  // at most once per heartbeat, because a list of rising times would make
                          // as many events
  for (const proto::AttemptCheckpoint& c : checkpoints) {
    const Job* job = ctx.state.jobs.find(c.key.job);
    if (job == nullptr || job->attempt != c.key.attempt || job->phase != Phase::running) continue;
    const auto& nodes = job->active->nodes;
    if (std::none_of(nodes.begin(), nodes.end(),
                     [&](const NodeRun& run) { return run.grant.node == node; }))
      continue;
    const Duration age = std::max(Duration{}, sent - c.at);
    if (age > ctx.now - *job->started) continue;  // older than the job's start, so not a checkpoint
    const Instant saved = ctx.now - age;
    if (job->active->checkpoint && saved <= *job->active->checkpoint + kSameTouch) continue;
    if (!noted.insert(job->id).second) continue;
    ctx.record(event::JobCheckpointed{job->id, saved});
    ctx.turn.changes.emplace_back(placed_view(ctx.state, ctx.state.jobs.at(c.key.job)));
  }
}

static void handle(Context& ctx, const ClientRequest& from, proto::CheckpointJobs&& message) {
  change_jobs(ctx, from, message.jobs, Trigger::checkpoint, [&](const Job& job) -> Result<void> {
    ctx.record(event::JobCheckpointed{job.id, std::nullopt});
    ctx.turn.changes.emplace_back(placed_view(ctx.state, ctx.state.jobs.at(job.id)));
    return {};
  });
}

const Subject kCheckpointMessages{.name = "checkpoint",
                                  .handlers = kHandlers<proto::CheckpointJobs>};

}  // namespace gantry::core
