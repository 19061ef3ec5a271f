// The kernel's counters for the whole machine.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/time/time.h"
#include "noded/machine/cgroup.h"
#include "noded/neighbours/sample.h"

namespace gantry::sampling {

// A small file of proc, sys or a cgroup that is read repeatedly, so it stays open.
class KeptFile {
 public:
  KeptFile() = default;
  explicit KeptFile(const std::string& path);
  [[nodiscard]] bool is_there() const { return static_cast<bool>(fd_); }
  // The text is valid until the next read of any file with this buffer; empty if it cannot be read.
  std::string_view read(std::string& buffer) const;
  // The number at the start of the file; 0 if there is none.
  std::uint64_t number(std::string& buffer) const;

 private:
  Fd fd_;
};

// The number after `name` in a line that starts "name 12 ..."; 0 if there is none.
std::uint64_t keyed(std::string_view text, std::string_view name);
// The number at the start of `text`, which is moved past it and the following spaces.
std::uint64_t take_number(std::string_view& text);
std::string_view take_word(std::string_view& text);
std::string_view take_line(std::string_view& text);
// The total in the "some" line of a pressure file, in microseconds.
std::uint64_t stalled_us(std::string_view text);
constexpr Duration us_of(std::uint64_t n) {
  return microseconds(static_cast<std::int64_t>(n));
}

class MachineFiles {
 public:
  // Paths of proc and sys. `memory_traffic_most` is in bytes per second; 0 = not known, and then
  // saturation of the memory bus cannot be computed.
  MachineFiles(std::string proc, std::string sys, std::uint64_t memory_traffic_most);

  // Fills in the sample except its jobs and its time.
  void read(neighbours::Sample& sample);
  // "254:0" -> "vda", for the disks that are counted.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& disks() const {
    return disks_;
  }
  [[nodiscard]] bool counts_pressure() const { return io_.is_there(); }
  [[nodiscard]] bool counts_memory_traffic() const { return !traffic_.empty(); }
  [[nodiscard]] bool knows_links() const { return !links_.empty(); }

 private:
  struct Link {
    std::string name;
    std::uint64_t bytes_per_second = 0;
    KeptFile in, out, in_drops, out_drops;
  };
  void find_disks();
  void find_links();
  void find_traffic();
  void read_disks(std::vector<neighbours::DiskCount>& out);

  std::string proc_, sys_;
  std::uint64_t traffic_most_;
  std::string buffer_;
  KeptFile cpu_, memory_, io_, stat_, meminfo_, diskstats_;
  std::vector<Link> links_;
  std::vector<KeptFile> traffic_;  // one for each domain of the last cache
  std::map<std::string, std::string, std::less<>> disks_;
};

// The kernel's counters for one attempt: of its cgroup, and of its network link.

using DiskNames = std::map<std::string, std::string, std::less<>>;  // "254:0" -> "vda"

// What is known of an attempt besides its counters.
struct WatchedJob {
  proto::AttemptKey key;
  std::string cgroup;               // below the node's directory: "job_7.1"
  std::vector<std::uint16_t> cpus;  // sorted; empty = all
  std::int64_t memory_limit = 0;    // 0 = none
  std::string network_sys;          // sysfs of its network namespace; "" = none
  std::uint64_t network_limit = 0;  // limit in bytes per second each way; 0 = none
  std::uint64_t io_limit = 0;       // limit in bytes per second for each disk; 0 = none
  friend bool operator==(const WatchedJob&, const WatchedJob&) = default;
};

class JobFiles {
 public:
  // `monitored`: its monitoring group (MonitorGroups), which may not be there.
  JobFiles(const runtime::CgroupLayout& layout, const std::string& monitored, WatchedJob job);
  [[nodiscard]] const WatchedJob& job() const { return job_; }
  // The disks on which it is throttled for the sake of others.
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
