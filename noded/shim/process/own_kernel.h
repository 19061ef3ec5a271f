// A job in a sandbox whose kernel is not the node's: gvisor, whose runtime runsc is a kernel in
// user space, and vm, by a runtime that the node's configuration names. The runtime stays in the
// foreground with pipes for the job's standard files, and ends with the job's exit status. All of
// it is in the job's cgroup. Processes of the node cannot enter such a container, so it has no
// steps; signals are sent with the runtime's `kill`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "noded/runtime/job_dir.h"
#include "noded/shim/child.h"
#include "noded/shim/io/outputs.h"
#include "noded/shim/rootfs/oci_config.h"
#include "noded/shim/rootfs/rootfs.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

// Runs it to its end and sets the record's exit status. An error means that nothing of it ran.
Result<void> run_own_kernel(Shim& shim, Signals& signals, const Root& root,
                            const StandardFiles& files, const std::vector<std::string>& env,
                            ExitRecord& record, std::optional<Beginning>& began);

// Runtime `process`: the script runs as a plain process of its user, in the job's cgroup, without a
// container. It is meant for development; a node uses it only if its configuration names it.

// Runs the job from start to exit; fills in `began` and the record's exit.
Result<void> run_process_job(Shim& shim, Signals& signals, const StandardFiles& files,
                             ExitRecord& record, std::optional<Beginning>& began);

// Why a batch script could not be started, in words that tell its owner what to change.

// `error` is the errno of the script's exec. If a file is missing, it is the program in the
// script's first line, because the script itself exists: "/usr/bin/fish does not exist on n1
// (...)".
std::string script_failure(const Shim& shim, int error);

}  // namespace gantry::runtime
