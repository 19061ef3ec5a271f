// Reads one neighbours::Sample: what the machine and its jobs have used until now. It costs some
// files for each job (bench/neighbours).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "noded/machine/cgroup.h"
#include "noded/sampling/machine_files.h"

namespace gantry::sampling {

// Monitoring groups of resctrl, where the machine has it: one for each attempt, so that the kernel
// counts what its processes move to and from memory. Groups are a matter of the whole machine, so
// their names begin with the node's place among the cgroups: "gantry.n1.job_7.1".
//
// https://docs.kernel.org/arch/x86/resctrl.html
class MonitorGroups {
 public:
  // `resctrl` is where it is mounted. If it is not, or counts nothing, nothing is done.
  MonitorGroups(const std::string& resctrl, runtime::CgroupLayout layout);

  // The attempts that run now, by their cgroups ("job_7.1"): makes their groups and moves their
  // processes there, whose children then begin there as well. Groups of other attempts of this node
  // are removed. An attempt for which the processor has no number left is not counted.
  void watch(const std::vector<std::string>& cgroups);
  [[nodiscard]] std::string path_of(const std::string& cgroup) const {
    return groups_ + prefix_ + cgroup;
  }

 private:
  void remove_others();
  void move_processes(const std::string& cgroup) const;

  std::string groups_, prefix_;
  runtime::CgroupLayout layout_;
  bool counts_;
  std::map<std::string, unsigned> moved_;  // how often, by cgroup
};

struct SamplerOptions {
  runtime::CgroupLayout cgroups;
  std::string proc = "/proc", sys = "/sys";
  std::uint64_t memory_traffic_most =
      0;  // bytes per second that the memory can move; 0 = not known
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // The attempts that run now; files of those that are new are opened, of others closed.
  void watch(std::vector<WatchedJob> jobs);
  // `at` is the present time, by the caller's clock.
  neighbours::Sample read(Instant at);
  // The job is held back on this disk from now on, or no more.
  void hold(const proto::AttemptKey& key, const std::string& disk) {
    if (const auto it = jobs_.find(key); it != jobs_.end()) it->second.hold(disk);
  }
  void let_go(const proto::AttemptKey& key, const std::string& disk) {
    if (const auto it = jobs_.find(key); it != jobs_.end()) it->second.let_go(disk);
  }
  [[nodiscard]] const WatchedJob* job(const proto::AttemptKey& key) const;
  // "MAJOR:MINOR" -> name of the disks that are counted.
  [[nodiscard]] const DiskNames& disks() const { return machine_.disks(); }

  // What cannot be counted on this node and why, a sentence each.
  [[nodiscard]] std::vector<std::string> not_counted() const;

 private:
  SamplerOptions options_;
  MachineFiles machine_;
  MonitorGroups groups_;
  std::map<proto::AttemptKey, JobFiles> jobs_;
  std::string buffer_;
};

}  // namespace gantry::sampling
