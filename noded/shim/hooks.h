// Prolog and epilog. They run outside the container, with noded's rights, in the host's mounts.
#pragma once

#include <string>

#include "noded/shim/shim.h"

namespace gantry::runtime {

struct HookPlace {
  int mount_namespace = -1;            // -1 = the shim's present one
  int root = -1;                       // the root directory in that mount namespace
  const ExitRecord* record = nullptr;  // epilog: how the job ended
};

// Runs a prolog or epilog. Its environment has what the controller and this node say of the job
// (SLURM_*, GANTRY_*) and PATH, and for an epilog GANTRY_EXIT_CODE and GANTRY_EXIT_SIGNAL; it has
// nothing of the user's own environment. Fails with "prolog PATH: exit status 1: last line".
Result<void> run_hook(const Shim& shim, const char* name, const std::string& path, HookPlace place,
                      Signals& signals);

}  // namespace gantry::runtime
