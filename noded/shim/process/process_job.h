// Runtime `process`: the script as a plain process of its user, in the job's cgroup, without a
// container. For development; a node uses it only when it is configured by name.
#pragma once

#include "noded/runtime/beginning.h"
#include "noded/shim/io/outputs.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

// From start to exit; fills in `began` and the record's exit.
Result<void> run_process_job(Shim& shim, Signals& signals, const StandardFiles& files,
                             ExitRecord& record, std::optional<Beginning>& began);

}  // namespace gantry::runtime
