// Monitoring groups of resctrl, where the machine has it: one for each attempt, so that the kernel
// counts what its processes move to and from memory. Groups are a matter of the whole machine, so
// their names begin with the node's place among the cgroups: "gantry.n1.job_7.1".
//
// https://docs.kernel.org/arch/x86/resctrl.html
#pragma once

#include <map>
#include <string>
#include <vector>

#include "noded/machine/cgroup_layout.h"

namespace gantry::sampling {

class MonitorGroups {
 public:
  // `resctrl` is where it is mounted. If it is not, or counts nothing, nothing is done.
  MonitorGroups(const std::string& resctrl, runtime::CgroupLayout layout);

  // The attempts that run now, by their cgroups ("job_7.1"): makes their groups and moves their
  // processes there, whose children then begin there as well. Groups of other attempts of this node
  // are removed. An attempt for which the processor has no number left is not counted.
  void watch(const std::vector<std::string>& cgroups);
  [[nodiscard]] std::string path_of(const std::string& cgroup) const;

 private:
  void remove_others();
  void move_processes(const std::string& cgroup) const;

  std::string groups_, prefix_;
  runtime::CgroupLayout layout_;
  bool counts_;
  std::map<std::string, unsigned> moved_;  // how often, by cgroup
};

}  // namespace gantry::sampling
