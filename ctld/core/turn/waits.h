// For how long a job waited for what. Nothing is kept by job: a class of jobs remembers what its
// verdicts were and until when (Runtime), and only where they changed; when a job is placed, its
// wait is split along that, and goes into the placement's event and the history.
//
// What this controller has not seen (before a restart, or merged because a class changed its
// verdict more than kMaxWaitIntervals times) counts as the next thing that it knows of.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

inline constexpr std::size_t kMaxWaitIntervals = 32;
inline constexpr std::size_t kMaxClasses = 20'000;  // that remember; 20 MB at the most

// Before a plan's verdict of the class takes the place of the last one.
void verdict_changes(Context& ctx, ClassId id, const sched::ClassVerdict& next);

// By cause, the longest first, of a job that is placed now. Waits under a second are none.
std::vector<WaitPart> waits_of(const Context& ctx, const Job& job);

}  // namespace gantry::core
