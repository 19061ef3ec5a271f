// When a waiting job is likely to start: earlier than by the time limits of what runs, if the users
// of those jobs ask for more time than their jobs need (run_habits.h).
#pragma once

#include <optional>

#include "ctld/core/context.h"

namespace gantry::core {

// Call it once for each job that has ended by itself.
void note_run(Context& ctx, const Job& job);

// Not set if the planner expects no start, or if nothing is known that makes the start earlier by a
// minute or more. It assumes that the jobs before it run as long as planned. O(jobs on the
// partition's nodes).
std::optional<Instant> likely_start(const Context& ctx, const Job& job);

}  // namespace gantry::core
