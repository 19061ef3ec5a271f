// Dependencies between jobs: whether one is met, and telling the jobs that wait.
#pragma once

#include <optional>

#include "ctld/core/context.h"
#include "ctld/core/request.h"
#include "ctld/core/state/job.h"

namespace gantry::core {

struct Settled {
  bool met = false;                   // false: it will never be met
  std::optional<Instant> not_before;  // the dependency is met, after a delay
};

// How the dependency is settled; unset while it is open. Not for singleton and aftercorr.
std::optional<Settled> settled(const State& state, const Dependency& dependency, Instant now);

// For a submit: rewrites the spec's dependencies to what they mean (aftercorr on a job that is no
// array is afterok), and returns the status of each. The error is not_found for an unknown job and
// for one that `who` may not see.
struct DependencyStart {
  std::vector<DependencyStatus> statuses;
  std::optional<Instant> not_before;
  OrdinalSet corr_met, corr_never;
};
Result<DependencyStart> resolve_dependencies(const Context& ctx, const Identity& who,
                                             JobSpec& spec);

// Call it when the job has changed: settles what other jobs were waiting for.
void settle_dependents(Context& ctx, JobId job);

// Call it when a job of this user got or lost this name: a singleton may not have to wait any more.
void settle_named(Context& ctx, Uid uid, std::string_view name);

// Call it when tasks of an array ended without becoming elements; for aftercorr.
void settle_tasks(Context& ctx, JobId array, const OrdinalSet& tasks, bool ok);

}  // namespace gantry::core
