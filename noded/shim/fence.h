// A shim's part in fencing: it ends its job when the last contact of its node with the controller
// is too old, whether noded runs or not; see noded/runtime/job_dir.h.
//
// noded, if it runs, ends the job kNodedFirst earlier and reports that in the job's output. The
// shim reads the contact file every kLook, so that an administrator can switch fencing on or change
// its time while the job runs. Both times are much shorter than the margin that the controller
// adds.
#pragma once

#include <string>

#include "noded/shim/shim.h"

namespace gantry::runtime {

inline constexpr Duration kNodedFirst = seconds(2);
inline constexpr Duration kLook = seconds(10);

// Returns whether the job has to end; sets shim.fenced.
bool fence_is_over(Shim& shim);
// For poll(): the number of milliseconds until fence_is_over() has to be called again.
int fence_pause(const Shim& shim);
// Adds to the exit record that the job was fenced.
void explain_fence(const Shim& shim, ExitRecord& record);

// Waits until the held job may start; returns false if the shim is told to end instead.
bool await_go(Shim& shim, Signals& signals);

// Prolog and epilog. They run outside the container, with noded's rights, in the host's mounts.
struct HookPlace {
  int mount_namespace = -1;            // -1 = the shim's present one
  int root = -1;                       // the root directory in that mount namespace
  const ExitRecord* record = nullptr;  // for an epilog: how the job ended
};

// Runs a prolog or epilog. Its environment has the variables that the controller and this node set
// for the job (SLURM_*, GANTRY_*) and PATH, and for an epilog GANTRY_EXIT_CODE and
// GANTRY_EXIT_SIGNAL, but nothing of the user's own environment. Fails with "prolog PATH: exit
// status 1: last line".
Result<void> run_hook(const Shim& shim, const char* name, const std::string& path, HookPlace place,
                      Signals& signals);

}  // namespace gantry::runtime
