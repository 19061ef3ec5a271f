// Chooses the OCI runtime that this node uses, and finds out how well it isolates: runs a real
// container with a memory limit in each configured runtime, in order, until one passes.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

struct ProbeReport {
  std::string runtime;  // "crun 1.8.1", "runc 1.1.5+ds1", "process"
  // "crun: REASON", for each runtime that was tried before the chosen one.
  std::vector<std::string> refused;
  std::vector<std::string>
      layers_on;  // "user namespace", "seccomp", "memory limit (cgroup v1)", ...
  std::vector<std::string> layers_off;  // "memory limit: no cgroup may be written", ...
  std::uint32_t cgroup_version = 0;
  std::vector<SandboxFact> sandboxes;  // in addition to the standard one
};

// Runs a script once as job 0.1 of an unprivileged user, with `setup`, which names the runtime. The
// script checks its own confinement and then takes more memory than allowed. Takes about 0.1 s.
Result<void> try_container(const NodeSetup& setup, Sandbox level = Sandbox::standard);

std::string runtime_version(const std::string& path);  // "1.8.1"; "" = cannot be run
// Tries each sandbox whose runtime exists; without `test` it is assumed to work.
void describe_sandboxes(const NodeSetup& setup, bool test, ProbeReport& report);
void describe_layers(const NodeSetup& setup, bool seccomp, ProbeReport& report);

}  // namespace gantry::runtime
