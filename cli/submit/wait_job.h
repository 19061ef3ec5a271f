// gbatch --wait: waits until a job has ended.
#pragma once

#include <string>

#include "cli/session.h"

namespace gantry::cli {

// Waits for the job and returns its exit code. On a terminal one line shows state, reason and time;
// elsewhere each change of state is a line on standard error. If the controller goes away, it is
// waited for.
Result<int> wait_for_job(const std::string& program, Session session, JobId job, bool quiet);

}  // namespace gantry::cli
