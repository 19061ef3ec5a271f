// What the kernel counts for one attempt: its cgroup, and the link of its network.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "noded/machine/cgroup_layout.h"
#include "noded/neighbours/sample.h"
#include "noded/sampling/kept_file.h"

namespace gantry::sampling {

using DiskNames = std::map<std::string, std::string, std::less<>>;  // "254:0" -> "vda"

// What is known of an attempt beside its counts.
struct WatchedJob {
  proto::AttemptKey key;
  std::string cgroup;               // below the node's directory: "job_7.1"
  std::vector<std::uint16_t> cpus;  // sorted; empty = all
  std::int64_t memory_limit = 0;    // 0 = none
  std::string network_sys;          // sysfs of its network namespace; "" = it has none
  std::uint64_t network_limit = 0;  // bytes per second each way; 0 = none
  std::uint64_t io_limit = 0;       // bytes per second of each disk; 0 = none
  friend bool operator==(const WatchedJob&, const WatchedJob&) = default;
};

class JobFiles {
 public:
  // `monitored`: its monitoring group (monitor_groups.h), which may not be there.
  JobFiles(const runtime::CgroupLayout& layout, const std::string& monitored, WatchedJob job);
  [[nodiscard]] const WatchedJob& job() const { return job_; }
  // The disks on which it is held back for others' sake.
  void hold(const std::string& disk) { held_.insert(disk); }
  void let_go(const std::string& disk) { held_.erase(disk); }
  neighbours::JobCount read(const DiskNames& disks, std::string& buffer) const;

 private:
  void read_v1(const DiskNames& disks, neighbours::JobCount& out, std::string& buffer) const;
  void read_v2(const DiskNames& disks, neighbours::JobCount& out, std::string& buffer) const;

  WatchedJob job_;
  std::set<std::string> held_;
  std::uint32_t version_;
  KeptFile cpu_, memory_, io_, operations_;
  KeptFile cpu_pressure_, memory_pressure_, io_pressure_;
  KeptFile network_in_, network_out_;
  std::vector<KeptFile> traffic_;
};

}  // namespace gantry::sampling
