#include "ctld/core/job/step_check.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/limits.h"
#include "common/proto/steps.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/request.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

Result<void> check_step(const Context& ctx, const Identity& who, const Job& job,
                        const proto::StepCreate& message) {
  // A step runs as the job's owner, so the right to change a job, which a tenant's admin has, is
  // not enough.
  if (job.uid != who.owner.uid && !is_admin(who))
    return fail(ErrorCode::permission_denied,
                fmt::format("only the owner of job {} may start steps in it: they run as that user",
                            display_id(ctx.state, job)));
  if (auto r = check_text("the step's name", message.name, kMaxNameBytes); !r) return r;
  if (auto r = check_text("the GPUs' model", message.shape.gpu_model, kMaxNameBytes); !r) return r;
  if (auto r = check_tres(message.shape.tres); !r) return r;
  if (message.shape.hosts.size() > kMaxStepTasks)
    return fail(ErrorCode::limit_exceeded, fmt::format("{} tasks in a step; at most {} are allowed",
                                                       message.shape.hosts.size(), kMaxStepTasks));
  const std::size_t named = std::max(message.shape.nodelist.size(), message.shape.excluded.size());
  if (named > kMaxJobNodes)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("the step names {} nodes; at most {} may be named", named, kMaxJobNodes));
  if (job.active->steps.size() >= ctx.config.controller.max_job_steps)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("job {} has had {} steps; controller.max_job_steps allows no more",
                            display_id(ctx.state, job), job.active->steps.size()));
  return {};
}

StepId number_of_step(const State& state, const Job& job, std::optional<StepId> part_of) {
  StepId next = job.active->next_step;
  const auto& het = class_of(state, job).het;
  if (!het) return next;
  for (std::uint32_t i = 0; i < het->size; ++i) {
    const Job* other = state.jobs.find(het->member(i));
    if (other == nullptr || !other->active || other == &job) continue;
    if (part_of && *part_of >= job.active->next_step && other->active->next_step > StepId{} &&
        *part_of == StepId(other->active->next_step.value() - 1))
      return *part_of;
    next = std::max(next, other->active->next_step);
  }
  return next;
}

}  // namespace gantry::core
