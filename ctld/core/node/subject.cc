// Reservations in time as a subject.
#include "ctld/core/node/subject.h"

#include "ctld/core/node/memory.h"
#include "ctld/core/node/windows.h"
#include "ctld/core/runtime.h"

namespace gantry::core {
namespace {

void start_windows(Context& ctx) {
  ctx.rt.node->window_due = next_window(ctx);
}

std::optional<Instant> window_due(const Context& ctx) {
  return ctx.rt.node->window_due;
}

}  // namespace

const Subject kWindows{
    .name = "reservations", .start = start_windows, .due = window_due, .ring = run_windows};

}  // namespace gantry::core
