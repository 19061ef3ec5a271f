// A shim as noded sees it: a detached process, watched through its pidfd, alive as long as its lock
// is held.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

struct ShimProcess {
  int pid = 0;
  Fd pidfd;
};

enum class ShimState { never_ran, alive, gone };

// Starts a shim in its own session. It inherits only the lock of `dir` (descriptor 3) and `log` as
// stderr.
Result<ShimProcess> start_shim(const std::string& shim_path, const std::string& dir,
                               const std::vector<std::string>& args, int log);

// Takes the lock of a directory whose shim will be started; error already_exists if a shim holds
// it.
Result<Fd> take_lock(const std::string& dir);

// Starts a program in its own session. Its standard files are /dev/null, except that stderr is
// `log`; its descriptor 3 is `third` (-1 = none). It is reaped like a shim. argv[0] is a path.
Result<ShimProcess> start_process(const std::vector<std::string>& argv, int third, int log);

// For use after a restart: a shim whose lock is held is alive, whatever process id its file names.
ShimState find_shim(const std::string& dir, ShimProcess& found);

// Whether the shim is stopped, by SIGSTOP or a debugger. Then it reacts only to SIGKILL.
bool is_stopped(const ShimProcess& shim);
void signal_shim(const ShimProcess& shim, int number);
bool reap_shim(const ShimProcess& shim);  // reaps the shim if it was a child of this process; false
                                          // = it still runs

// The shims' template: a gantry-shim that noded started once, and that forks itself for every job
// and step. A fork costs 0.06 ms and the start of a program 0.6 ms: the C library asks the
// processor for its features with 68 CPUID instructions, and on a virtual machine each of them
// costs an exit to the hypervisor.
//
// The template only saves time, and owns nothing. If it is killed at any moment, the shims
// continue, and the next one is started without it. No job is lost or started twice by that,
// because a job runs only while its shim holds the lock of its directory. So once the template is
// dead, the holder of the lock is the shim that it made; if nobody holds the lock and it contains
// no process id, the template made none.
class ShimTemplate {
 public:
  ShimTemplate() = default;
  // `log` becomes the shims' standard error; it must stay open.
  ShimTemplate(std::string shim_path, std::string state_dir, int log);
  ShimTemplate(const ShimTemplate&) = delete;
  ShimTemplate& operator=(const ShimTemplate&) = delete;
  ShimTemplate(ShimTemplate&&) = default;
  ShimTemplate& operator=(ShimTemplate&&) = default;
  ~ShimTemplate() = default;  // closes its socket, which ends the template

  void start();  // a template that fails to start is tried again a few times
  void look();   // reaps a killed template, and starts the next
  // start_shim() of shim_process.h, through the template if there is one.
  Result<ShimProcess> start_shim(const std::string& dir, const std::vector<std::string>& args);
  [[nodiscard]] int pid() const { return process_.pid; }  // 0 = none

 private:
  bool ask(const std::vector<std::string>& args, const Fd& lock, ShimProcess& shim);
  Result<ShimProcess> end();  // waits until the process is dead, and returns it

  std::string shim_path_, state_dir_;
  int log_ = -1;
  ShimProcess process_;
  Fd socket_;
  int in_vain_ = 0;  // how many templates died in a row before they made a shim
};

}  // namespace gantry::runtime
