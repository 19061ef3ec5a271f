// Starting processes with a job's rights: the tasks of a step, inside a running container's
// namespaces, and the script of runtime `process`, outside of any. No OCI runtime is involved: an
// exec through crun costs 10 ms a task, this well under one. The confinement is the container's:
// its namespaces, its cgroup, the owner's ids, no capabilities (bounding set included), no new
// privileges, the same system call filter, no descriptor but 0, 1 and 2 (and `extra`, and `more`).
#pragma once

#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/proto/steps.h"
#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

inline constexpr int kExtraFd = 4;  // in the program
inline constexpr int kMoreFd = 6;   // the first of more

struct TaskSpec {
  std::vector<std::string> argv;    // argv[0] is looked up in PATH of env
  std::vector<std::string> env;     // "NAME=value"
  std::vector<std::uint16_t> cpus;  // affinity; empty = as it is
  int in = -1, out = -1, err = -1;  // all given
  int extra = -1;                   // one more descriptor, as kExtraFd; -1 = none
  std::vector<int> more;            // and these, as kMoreFd and on
  int program = -1;                 // what is executed in place of argv[0]; -1 = argv[0]
  // A new terminal of the container in place of in, out and err, of which the other side is passed
  // over `extra` (a SEQPACKET), which the program does not get.
  std::optional<proto::TerminalSize> terminal;
};

struct TaskPlace {
  int container = -1;  // pidfd of the container's PID 1; -1 = no container
  const std::vector<Fd>* cgroup = nullptr;
  const Owner* owner = nullptr;
  std::string cwd;          // inside the container
  std::string seccomp_bpf;  // raw; "" = none
  bool rootless = false;
};

struct StartedTask {
  int pid = 0;        // in the shim's PID namespace; a child of the shim
  std::string error;  // why it could not be executed; its exit status says so too
};

// Starts all, or says what kept the first from being started. A program that cannot be executed
// is no failure of this call: its task exits with 127 or 126, and `error` says why.
Result<std::vector<StartedTask>> start_tasks(const std::vector<TaskSpec>& tasks,
                                             const TaskPlace& place);

}  // namespace gantry::runtime
