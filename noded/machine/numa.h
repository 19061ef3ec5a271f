// Which NUMA nodes this machine has, and how far they are from each other, as its kernel says.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

inline constexpr std::uint32_t kNumaOwn = 10;
inline constexpr std::uint32_t kNumaUnknown = 255;  // farther than any: the kernel's own "no way"

// "0-3,8" to numbers; what is malformed is skipped.
std::vector<std::uint16_t> parse_cpu_list(std::string_view text);

class NumaMap {
 public:
  static NumaMap read(const std::string& base = "/sys/devices/system/node/");
  // Between a NUMA node and the nearest of these CPUs, as the firmware's table has it: 10 = its
  // own. kNumaUnknown where either is not known. A node below 0, which the device does not tell, is
  // as near as the own one.
  [[nodiscard]] std::uint32_t distance(std::span<const std::uint16_t> cpus, int node) const;

 private:
  std::map<std::uint16_t, int> node_of_;                  // by CPU
  std::map<int, std::map<int, std::uint32_t>> distance_;  // from, to
};

}  // namespace gantry::runtime
