// Reads one neighbours::Sample: what the machine and its jobs have used until now. It costs some
// files for each job (bench/neighbours).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "noded/sampling/job_files.h"
#include "noded/sampling/machine_files.h"
#include "noded/sampling/monitor_groups.h"

namespace gantry::sampling {

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
  void hold(const proto::AttemptKey& key, const std::string& disk);
  void let_go(const proto::AttemptKey& key, const std::string& disk);
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
