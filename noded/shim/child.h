// Starting and awaiting child processes of the shim: the OCI runtime, prolog and epilog, image
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
  std::vector<int> more;            // given to the child as descriptors 3, 4, ...; at most 4
  const std::vector<Fd>* cgroup = nullptr;  // entered before exec (open_cgroup_entries)
  int cgroup_directory = -1;          // the same at birth (open_cgroup_directory), if possible
  int mount_namespace = -1;           // entered before exec
  int root = -1;                      // the root directory in that namespace
  bool own_group = false;             // process group of its own, so that all of it can be killed
  std::uint32_t uid = 0, gid = 0;     // both 0 = as the shim
  std::vector<std::uint32_t> groups;  // with uid
  int namespaces = 0;  // CLONE_NEW*: made for it; with a pid namespace, all of it ends with it
  struct Limit {
    int what = 0;  // RLIMIT_*
    std::uint64_t most = 0;
    std::uint64_t soft = ~0ull;  // at most `most`
  };
  std::vector<Limit> limits;
  // With CLONE_NEWNS: it can write to no file system of the host's, but below `writable` (a
  // directory; empty = nowhere).
  bool read_only = false;
  std::string writable;
  bool goes_first = false;  // when the machine has no memory left: before what has jobs' score
};

Result<int> spawn(const ChildSpec& spec);

// What the shim reacts to while it waits: SIGTERM = give up, SIGUSR1 = go, SIGUSR2 = notice.
class Signals {
 public:
  Signals();  // blocks them for the process and opens a descriptor
  [[nodiscard]] int fd() const { return fd_.get(); }
  int next();  // a signal number, 0 = none waiting

 private:
  Fd fd_;
};

struct HelperEnd {
  int status = 0;         // as waitpid() gives it
  std::string output;     // the first 4 KiB of stderr, and of stdout where spec.out is -1
  std::string stopped;    // why it was killed with its group
  bool by_order = false;  // because of SIGTERM
};
// Runs to the end. It is killed when it is over its time, SIGTERM arrives or `stopped` gives a
// reason. An error: it could not be started.
Result<HelperEnd> run_to_end(ChildSpec spec, Signals& signals, Duration timeout,
                             const std::function<std::string()>& stopped = {});

// What it said. runtime_failed when it was killed, or ended with a status other than 0: the message
// has its name, status and last line.
Result<std::string> said_of(const std::string& name, HelperEnd end);

// Both.
Result<std::string> run_helper(ChildSpec spec, Signals& signals, Duration timeout,
                               const std::function<std::string()>& stopped = {});

std::string last_line(const std::string& text);
std::string status_text(int wait_status);  // "exit status 3", "signal 9 (Killed)"

}  // namespace gantry::runtime
