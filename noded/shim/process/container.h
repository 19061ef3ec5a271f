// Runs a container of the OCI runtime, from prepared files and root to its exit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/job/job_state.h"
#include "common/result.h"
#include "common/types.h"
#include "noded/shim/io/outputs.h"
#include "noded/shim/process/init_protocol.h"
#include "noded/shim/rootfs/oci_config.h"
#include "noded/shim/rootfs/rootfs.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

struct Container {
  int init_pid = 0;                   // in the shim's PID namespace
  int child_pid = 0;                  // the batch shell
  Fd socket;                          // socket to gantry-init
  bool closed = false;                // the socket has closed: PID 1 is ending or has ended
  bool ended = false;                 // PID 1 has been reaped
  std::optional<int> program_status;  // wait status of the batch shell, as gantry-init reports it
  std::optional<int> exec_error;      // errno of the shell's exec
  int init_status = 0;                // wait status of PID 1
};

// Starts the runtime, and returns when PID 1 runs. An error has the runtime's message.
Result<Container> start_container(const Shim& shim, const Root& root, const StandardFiles& files,
                                  const std::vector<std::string>& env, Signals& signals);

// Reads what gantry-init has reported, without blocking.
void read_init(Container& container);
void say_go(const Container& container);
// Reaps ended children; sets `ended` when PID 1 is among them.
void reap_children(Container& container);

// The last line of a runtime's log, without its time stamp; kNoComplaint if there is none.
inline constexpr std::string_view kNoComplaint = "no reason given";
std::string runtime_complaint(const std::string& log);

ExitStatus exit_of(const Container& container);

// The user namespace of a container, made before the container.
//
// The kernel also counts inotify instances, queued signals, timers and message queues of a
// namespace for the user who made it. If root made it, one job could use up the limits of root and
// all other jobs. So a separate user id makes each job's namespace. No other process may have that
// id, because it would have all capabilities in the namespace.

// Range of host ids for this. A job gets the first one plus the last 20 bits of its job id.
inline constexpr std::uint32_t kNamespaceUidBase = 0x70100000;
inline constexpr std::uint32_t kNamespaceUids = 1u << 20;

// A process that holds the namespace open, until this object ends it.
class UserNamespace {
 public:
  // Error runtime_failed: the kernel does not allow the namespace, or not these mappings.
  static Result<UserNamespace> make(JobId job, const std::vector<IdRange>& uids,
                                    const std::vector<IdRange>& gids);
  UserNamespace(UserNamespace&& other) noexcept;
  UserNamespace& operator=(UserNamespace&&) = delete;
  ~UserNamespace();
  // its path in the host's /proc, for the runtime
  [[nodiscard]] std::string path() const { return "/proc/" + std::to_string(pid_) + "/ns/user"; }

 private:
  explicit UserNamespace(int pid) : pid_(pid) {}
  int pid_;
};

}  // namespace gantry::runtime
