// The NUMA nodes of this machine, and how far they are from each other, as its kernel says.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

inline constexpr std::uint32_t kNumaOwn = 10;
// Larger than any distance; the kernel itself uses 255 for "cannot be reached".
inline constexpr std::uint32_t kNumaUnknown = 255;

// Turns "0-3,8" into numbers; malformed parts are skipped.
std::vector<std::uint16_t> parse_cpu_list(std::string_view text);

class NumaMap {
 public:
  static NumaMap read(const std::string& base = "/sys/devices/system/node/");
  [[nodiscard]] const std::map<std::uint16_t, int>& nodes() const { return node_of_; }  // by CPU
  // The distance from a NUMA node to the nearest of these CPUs, from the firmware's table: 10 = the
  // CPUs' own node. kNumaUnknown if either is not known. A node below 0 means that the device does
  // not tell its node; it counts as the CPUs' own.
  [[nodiscard]] std::uint32_t distance(std::span<const std::uint16_t> cpus, int node) const;

 private:
  std::map<std::uint16_t, int> node_of_;                  // by CPU
  std::map<int, std::map<int, std::uint32_t>> distance_;  // by both nodes: from, to
};

}  // namespace gantry::runtime
