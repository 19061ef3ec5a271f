// Jobs that a limit of use keeps from the scheduler.
//
// A job is looked at when it is touched, and again when the plan wants to start it. One that a
// limit holds back is listed with those of its class, account and user; whenever a job starts or
// ends, a few of each list whose first job could start now go to the scheduler.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// True if a limit keeps the job from the scheduler now; it is listed then.
bool limited(Context& ctx, const Job& job);
// The same for a job that the plan wants to start: the scheduler is told that it may not start.
bool refused_by_limit(Context& ctx, const Job& job);
void drop_limit(Context& ctx, JobId job);  // the job no longer waits for a limit
// Marks jobs that may start now as touched. Returns true if there are some.
bool open_limits(Context& ctx);
// Looks again at jobs that may start because time has passed: recorded use decays.
void look_at_limits(Context& ctx);

}  // namespace gantry::core
