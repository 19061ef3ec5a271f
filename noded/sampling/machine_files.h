// What the kernel counts for the whole machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "noded/neighbours/sample.h"
#include "noded/sampling/kept_file.h"

namespace gantry::sampling {

class MachineFiles {
 public:
  // Paths of proc and sys. `memory_traffic_most` is in bytes per second; 0 = not known, and then
  // nobody can say how full the memory's channels are.
  MachineFiles(std::string proc, std::string sys, std::uint64_t memory_traffic_most);

  // Fills all of the sample but its jobs and its time.
  void read(neighbours::Sample& sample);
  // "254:0" -> "vda", of disks that are counted.
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

}  // namespace gantry::sampling
