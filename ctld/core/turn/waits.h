// How long a job waited, for each cause. Nothing is kept per job. For each class of jobs,
// TurnMemory has when its verdict changed and what it was before. When a job is placed, its wait is
// split at these times, and is written into the event of the placement and into the history.
//
// Time without a known cause counts for the next known cause. That is time before a restart, and
// the oldest intervals of a class that changed its verdict more than kMaxWaitIntervals times.
#pragma once

#include "common/job/job_state.h"
#include "ctld/core/context.h"
#include "ctld/core/state/job.h"
#include "ctld/sched/plan.h"

namespace gantry::core {

inline constexpr std::size_t kMaxWaitIntervals = 32;
inline constexpr std::size_t kMaxClasses = 20'000;  // classes with intervals; at most 20 MB

// Call it before a plan's verdict of the class replaces the last one.
void verdict_changes(Context& ctx, ClassId id, const sched::ClassVerdict& next);

// Waits of a job that is placed now, by cause, the longest first. Waits under a second are left
// out.
std::vector<WaitPart> waits_of(const Context& ctx, const Job& job);

}  // namespace gantry::core
