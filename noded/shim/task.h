// Starts processes with a job's rights: the tasks of a step, inside a running container's
// namespaces, and the script of runtime `process`, outside of any container. No OCI runtime is
// involved: an exec through crun costs 10 ms a task, this takes much less than one. A task is
// confined like the container: by its namespaces, its cgroup, the owner's ids, no capabilities
// (bounding set included), no new privileges and the same system call filter. Its only descriptors
// are 0, 1 and 2 (and `extra`, and `more`).
#pragma once

#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/proto/steps.h"
#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

inline constexpr int kExtraFd = 4;  // number of the `extra` descriptor in the program
inline constexpr int kMoreFd = 6;   // number of the first `more` descriptor in the program

struct TaskSpec {
  std::vector<std::string> argv;    // argv[0] is looked up in PATH of env
  std::vector<std::string> env;     // "NAME=value"
  std::vector<std::uint16_t> cpus;  // affinity; empty = not changed
  std::vector<std::uint16_t> mems;  // NUMA nodes of its memory; empty = not changed
  bool mems_preferred = false;      // other NUMA nodes may be used if these are full
  std::string
      note;  // written to its standard error before it begins, with its process id for "{pid}"
  int in = -1, out = -1, err = -1;  // all three must be given
  int extra = -1;                   // one more descriptor, as kExtraFd; -1 = none
  std::vector<int> more;            // further descriptors, from kMoreFd on
  int program = -1;  // descriptor of the program to execute; -1 = argv[0] is executed
  // If set, the task gets a new terminal of the container in place of in, out and err. The
  // terminal's other side is passed to the shim over `extra` (a SEQPACKET), which the program does
  // not get.
  std::optional<proto::TerminalSize> terminal;
  const ProcessLimits* limits = nullptr;  // requested limits; nullptr = the node's own
};

struct TaskPlace {
  int container = -1;  // pidfd of the container's PID 1; -1 = no container
  const std::vector<Fd>* cgroup = nullptr;
  const Owner* owner = nullptr;
  std::string cwd;          // inside the container
  std::string seccomp_bpf;  // binary form; "" = none
  bool rootless = false;
  bool hardened = false;  // Landlock and no core dumps, as gantry-init does for the batch script
};

struct StartedTask {
  int pid = 0;        // in the shim's PID namespace; a child of the shim
  std::string error;  // why its program could not be executed; the exit status shows that too
};

// Starts all tasks, or returns why the first one could not be started. A program that cannot be
// executed is no failure of this call: its task exits with 127 or 126, and `error` has the reason.
Result<std::vector<StartedTask>> start_tasks(const std::vector<TaskSpec>& tasks,
                                             const TaskPlace& place);

// Pins this process to these cores; none = to all.
void pin(const std::vector<std::uint16_t>& cpus);

}  // namespace gantry::runtime
