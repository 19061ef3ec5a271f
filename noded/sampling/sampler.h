// Reads one neighbours::Sample: what the machine and its jobs have used so far. It reads some files
// for each job (bench/neighbours).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "noded/machine/cgroup.h"
#include "noded/sampling/machine_files.h"

namespace gantry::sampling {

// Monitoring groups of resctrl, if the machine has it: one for each attempt, so that the kernel
// counts what its processes transfer to and from memory. Groups are visible on the whole machine,
// so their names begin with the node's place among the cgroups: "gantry.n1.job_7.1".
//
// https://docs.kernel.org/arch/x86/resctrl.html
class MonitorGroups {
 public:
  // `resctrl` is its mount point. If it is not mounted, or counts nothing, this class does nothing.
  MonitorGroups(const std::string& resctrl, runtime::CgroupLayout layout);

  // The running attempts, by their cgroups ("job_7.1"): makes their groups and moves their
  // processes there, whose children then start there as well. Groups of other attempts of this node
  // are removed. If the processor has no group left, an attempt is not counted.
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
  std::map<std::string, unsigned> moved_;  // number of attempts to make it, by cgroup
};

struct SamplerOptions {
  runtime::CgroupLayout cgroups;
  std::string proc = "/proc", sys = "/sys";
  std::uint64_t memory_traffic_most = 0;  // memory bandwidth in bytes per second; 0 = not known
};

class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // The running attempts; opens files of new ones, closes those of ended ones.
  void watch(std::vector<WatchedJob> jobs);
  // `at` is the present time on the caller's clock.
  neighbours::Sample read(Instant at);
  // From now on the job is throttled on this disk, or no longer.
  void hold(const proto::AttemptKey& key, const std::string& disk) {
    if (const auto it = jobs_.find(key); it != jobs_.end()) it->second.hold(disk);
  }
  void let_go(const proto::AttemptKey& key, const std::string& disk) {
    if (const auto it = jobs_.find(key); it != jobs_.end()) it->second.let_go(disk);
  }
  [[nodiscard]] const WatchedJob* job(const proto::AttemptKey& key) const;
  // "MAJOR:MINOR" -> name, for the disks that are counted.
  [[nodiscard]] const DiskNames& disks() const { return machine_.disks(); }

  // What cannot be counted on this node and why, one sentence each.
  [[nodiscard]] std::vector<std::string> not_counted() const;

 private:
  SamplerOptions options_;
  MachineFiles machine_;
  MonitorGroups groups_;
  std::map<proto::AttemptKey, JobFiles> jobs_;
  std::string buffer_;
};

}  // namespace gantry::sampling
