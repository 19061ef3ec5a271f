// Runtime `process`: the script as a plain process of its user, in the job's cgroup, without a
// container. For development; a node uses it only when it is configured by name.
#pragma once

#include "noded/shim/io/outputs.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

// From start to exit; fills in started and exit.
Result<void> run_process_job(Shim& shim, Signals& signals, const StandardFiles& files,
                             ExitRecord& record);

}  // namespace gantry::runtime
