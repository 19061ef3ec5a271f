// UpdateStep: running steps get another time limit, and their nodes are told.
#include <fmt/core.h>

#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_text.h"
#include "common/proto/session.h"
#include "common/proto/steps.h"
#include "common/text/text.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_shrink.h"
#include "ctld/core/handler.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/resize/subject.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr Duration kLongestStepLimit = hours(24 * 3'650);

Error none_runs(const proto::UpdateStep& message) {
  const std::string job = format_job_ref(message.job);
  return {ErrorCode::not_found,
          message.step ? fmt::format("there is no step {}.{} that runs", job, message.step->value())
                       : fmt::format("no step of job {} runs", job)};
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::UpdateStep&& message) {
  if (message.time_limit < Duration{} || message.time_limit > kLongestStepLimit)
    return refuse(ctx, from,
                  {ErrorCode::invalid_argument,
                   fmt::format("the time limit of a step is 0 (none of its own) to {}",
                               format_duration(kLongestStepLimit))});
  std::vector<proto::JobRef> unknown;
  const auto found = resolve(ctx.state, from.who, {message.job}, unknown, May::change);
  const Job* job = found.size() == 1 ? &ctx.state.jobs.at(found[0].job) : nullptr;
  std::vector<StepId> steps;
  if (job != nullptr && job->placed())
    for (const StepState& step : job->active->steps)
      if (!step.ended && (!message.step || step.id == *message.step)) steps.push_back(step.id);
  if (steps.empty()) return refuse(ctx, from, none_runs(message));
  for (const StepId id : steps) {
    ctx.record(event::StepLimitSet{job->id, id, message.time_limit});
    for (const StepState& step : job->active->steps)
      for (const NodeId node : step.nodes)
        if (step.id == id && ctx.link(node).session != 0)
          ctx.send(node, proto::LimitStep{
                             ctx.stamp(node), {job->id, job->attempt}, id, message.time_limit});
  }
  ctx.reply(from, proto::Ok{});
}

const Subject kStepLimitMessages{.name = "step limit", .handlers = kHandlers<proto::UpdateStep>};

}  // namespace gantry::core
