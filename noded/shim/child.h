// Starts child processes of the shim and waits for them: the OCI runtime, prolog and epilog, image
// tools, and the tasks of `process` mode. The shim has one thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

struct ChildSpec {
  std::vector<std::string> argv;  // argv[0] is a path
  std::vector<std::string> env;   // "NAME=value"
  std::string cwd = "/";
  int in = -1, out = -1, err = -1;  // -1 = /dev/null
  std::vector<int> more;            // passed to the child as descriptors 3, 4, ...; at most 4
  const std::vector<Fd>* cgroup = nullptr;  // the child enters it before exec (open_cgroup_entries)
  // If possible, the kernel starts the child in it (open_cgroup_directory).
  int cgroup_directory = -1;
  int mount_namespace = -1;        // the child enters it before exec
  int root = -1;                   // the root directory in that namespace
  bool own_group = false;          // gives it its own process group, which can be killed as a whole
  std::uint32_t uid = 0, gid = 0;  // both 0 = same as the shim
  std::vector<std::uint32_t> groups;  // used only with uid
  // CLONE_NEW* flags of new namespaces; the processes of a new PID namespace end with the child.
  int namespaces = 0;
  struct Limit {
    int what = 0;  // RLIMIT_*
    std::uint64_t most = 0;
    std::uint64_t soft = ~0ull;  // reduced to `most`
  };
  std::vector<Limit> limits;
  // With CLONE_NEWNS: the child can write to none of the host's file systems except below the
  // directory `writable` (empty: nowhere).
  bool read_only = false;
  std::string writable;
  bool goes_first = false;  // when the machine runs out of memory, the kernel kills it before jobs
};

Result<int> spawn(const ChildSpec& spec);

// The signals that the shim handles while it waits: SIGTERM = give up, SIGUSR1 = go, SIGUSR2 =
// notice.
class Signals {
 public:
  Signals();  // blocks the signals for the process and opens a descriptor
  [[nodiscard]] int fd() const { return fd_.get(); }
  int next();  // the next signal's number; 0 = no signal is waiting

 private:
  Fd fd_;
};

struct HelperEnd {
  int status = 0;         // as returned by waitpid()
  std::string output;     // the first 4 KiB of stderr, and of stdout where spec.out is -1
  std::string stopped;    // why it was killed with its process group
  bool by_order = false;  // it was stopped by SIGTERM
};
// Runs a program to its end. The program is killed at its time limit, when SIGTERM arrives or when
// `stopped` returns a reason. An error means that it could not be started.
Result<HelperEnd> run_to_end(ChildSpec spec, Signals& signals, Duration timeout,
                             const std::function<std::string()>& stopped = {});

// Returns the program's output. Error runtime_failed if it was killed or failed; the message has
// its name, status and last line.
Result<std::string> said_of(const std::string& name, HelperEnd end);

// run_to_end() and said_of() in one.
Result<std::string> run_helper(ChildSpec spec, Signals& signals, Duration timeout,
                               const std::function<std::string()>& stopped = {});

std::string last_line(const std::string& text);
std::string status_text(int wait_status);  // "exit status 3", "signal 9 (Killed)"

}  // namespace gantry::runtime
