// The shims' template: a gantry-shim that was started once and forks itself for every job and step.
// A fork costs 0.06 ms, the start of a program 0.6: the C library asks the processor what it can
// with 68 CPUID instructions, each of which leaves a virtual machine.
//
// It is a convenience and owns nothing. Killed at any moment, it costs the shims nothing, and the
// next one is started without it. No job is lost or started twice by that: a job runs only behind
// the lock of its directory, so once the template is dead for certain, whoever holds the lock is
// the shim that it made; and if nobody does, and nobody signed it, none was made.
#pragma once

#include <string>
#include <vector>

#include "noded/runtime/shim_process.h"

namespace gantry::runtime {

class ShimTemplate {
 public:
  ShimTemplate() = default;
  // The shims' standard error is `log`, which must stay open.
  ShimTemplate(std::string shim_path, std::string state_dir, int log);
  ShimTemplate(const ShimTemplate&) = delete;
  ShimTemplate& operator=(const ShimTemplate&) = delete;
  ShimTemplate(ShimTemplate&&) = default;
  ShimTemplate& operator=(ShimTemplate&&) = default;
  ~ShimTemplate() = default;  // its socket closes, and it ends

  void start();  // one that does not come up is tried again a few times
  void look();   // reaps one that was killed, and starts the next
  // start_shim() of shim_process.h, through the template if there is one.
  Result<ShimProcess> start_shim(const std::string& dir, const std::vector<std::string>& args);
  [[nodiscard]] int pid() const { return process_.pid; }  // 0 = none

 private:
  bool ask(const std::vector<std::string>& args, const Fd& lock, ShimProcess& shim);
  Result<ShimProcess> end();  // the process, dead

  std::string shim_path_, state_dir_;
  int log_ = -1;
  ShimProcess process_;
  Fd socket_;
  int in_vain_ = 0;  // how many, one after the other, died before they made a shim
};

}  // namespace gantry::runtime
