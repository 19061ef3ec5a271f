// Triggers as a subject: settle fires those that are due, so no Subject::ring is needed.
#include "ctld/core/notify/subject.h"

#include "ctld/core/notify/triggers.h"

namespace gantry::core {
namespace {

void watch_all(Context& ctx) {
  for (const auto& [id, one] : ctx.state.triggers.all) watch_idle(ctx, one);
}

}  // namespace

const Subject kTriggers{.name = "triggers", .started = watch_all, .due = next_trigger};

}  // namespace gantry::core
