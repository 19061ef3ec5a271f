// Runtime `process`: the script runs as a plain process of its user, in the job's cgroup, without a
// container. It is meant for development; a node uses it only if its configuration names it.
#pragma once

#include "noded/runtime/beginning.h"
#include "noded/shim/io/outputs.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

// Runs the job from start to exit; fills in `began` and the record's exit.
Result<void> run_process_job(Shim& shim, Signals& signals, const StandardFiles& files,
                             ExitRecord& record, std::optional<Beginning>& began);

}  // namespace gantry::runtime
