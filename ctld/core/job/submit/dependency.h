// Dependencies between jobs: what one means now, and telling those who wait.
#pragma once

#include <optional>

#include "ctld/core/context.h"
#include "ctld/core/state/job.h"

namespace gantry::core {

struct Settled {
  bool met = false;                   // else it never will be
  std::optional<Instant> not_before;  // met, but after a delay
};

// Unset while it is open. Not for singleton and aftercorr.
std::optional<Settled> settled(const State& state, const Dependency& dependency, Instant now);

// At submit: rewrites the spec's dependencies to what they mean (aftercorr on a job that is no
// array is afterok), and says how each stands. Unknown jobs, and those that `who` may not see:
// not_found.
struct DependencyStart {
  std::vector<DependencyStatus> statuses;
  std::optional<Instant> not_before;
  OrdinalSet corr_met, corr_never;
};
Result<DependencyStart> resolve_dependencies(const Context& ctx, const Identity& who,
                                             JobSpec& spec);

// The job changed: settles what others were waiting for.
void settle_dependents(Context& ctx, JobId job);

// A job of this user got or lost this name: singletons may not have to wait any more.
void settle_named(Context& ctx, Uid uid, std::string_view name);

// Tasks of an array ended without becoming elements; for aftercorr.
void settle_tasks(Context& ctx, JobId array, const OrdinalSet& tasks, bool ok);

}  // namespace gantry::core
