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
#pragma once

#include <string>
#include <vector>

#include "noded/runtime/shim_process.h"

namespace gantry::runtime {

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
