// Limits of use as a subject: limit_gate.cc keeps jobs from the scheduler and checks each start.
#include "ctld/core/limits/subject.h"

#include "ctld/core/limits/limit_gate.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/limits/memory.h"
#include "ctld/core/runtime.h"

namespace gantry::core {
namespace {

std::optional<Verdict> check_limits(const Context& ctx, const Job& job) {
  return verdict_of_limits(ctx.state, job, ctx.now);
}

std::optional<Instant> limits_due(const Context& ctx) {
  return ctx.rt.limits->due;
}

}  // namespace

const Subject kUseLimits{.name = "limits of use", .check = check_limits, .looks_later = true};
// Time alone may allow a start, because use decays.
const Subject kUseDecay{.name = "decay of use", .due = limits_due, .ring = look_at_limits};

}  // namespace gantry::core
