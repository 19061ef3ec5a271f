// A shim as noded sees it: started detached, watched through its pidfd, alive as long as its lock
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

// Starts a shim in a session of its own. It inherits nothing but the lock of `dir` (descriptor 3)
// and `log` as stderr.
Result<ShimProcess> start_shim(const std::string& shim_path, const std::string& dir,
                               const std::vector<std::string>& args, int log);

// Takes the lock of a directory whose shim is about to be started; already_exists when a shim holds
// it.
Result<Fd> take_lock(const std::string& dir);

// Starts a program in a session of its own. Its standard files are /dev/null, but stderr is `log`;
// its descriptor 3 is `third` (-1 = none). It is reaped like a shim. argv[0] is a path.
Result<ShimProcess> start_process(const std::vector<std::string>& argv, int third, int log);

// For use after a restart: a shim whose lock is held is alive, whatever process id its file names.
ShimState find_shim(const std::string& dir, ShimProcess& found);

// Is the shim stopped, by SIGSTOP or a debugger? Then it reacts to nothing but SIGKILL.
bool is_stopped(const ShimProcess& shim);
void signal_shim(const ShimProcess& shim, int number);
bool reap_shim(
    const ShimProcess& shim);  // leaves no zombie if the shim was our child; false = it still runs

// The shims' template: a gantry-shim that noded started once, and that forks itself for every job
// and step. A fork costs 0.06 ms and the start of a program 0.6 ms: the C library asks the
// processor for its features with 68 CPUID instructions, and on a virtual machine each of them
// costs an exit to the hypervisor.
//
// The template only saves time, and owns nothing. If it is killed at any moment, the shims run on,
// and the next one is started without it. No job is lost or started twice by that, because a job
// runs only behind the lock of its directory. So once the template is certainly dead, whoever holds
// the lock is the shim that it made; and if nobody holds the lock and nobody wrote a process id
// into it, the template made none.
class ShimTemplate {
 public:
  ShimTemplate() = default;
  // `log` becomes the shims' standard error; it must stay open.
  ShimTemplate(std::string shim_path, std::string state_dir, int log);
  ShimTemplate(const ShimTemplate&) = delete;
  ShimTemplate& operator=(const ShimTemplate&) = delete;
  ShimTemplate(ShimTemplate&&) = default;
  ShimTemplate& operator=(ShimTemplate&&) = default;
  ~ShimTemplate() = default;  // its socket closes, and so the template ends

  void start();  // a template that does not come up is tried again a few times
  void look();   // reaps a template that was killed, and starts the next
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
