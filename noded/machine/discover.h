// The resources of this machine: cores, sockets, NUMA nodes, memory, scratch space, boot id.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

struct CpuFact {
  std::uint16_t id = 0;    // logical CPU
  std::uint32_t core = 0;  // number of the core within its socket
  std::uint32_t socket = 0;
  std::uint16_t numa = 0;
};

struct NumaFact {
  std::uint16_t id = 0;
  std::int64_t memory = 0;  // bytes
};

struct NodeFacts {
  std::vector<CpuFact> cpus;  // CPUs that this process may use, by id
  std::vector<NumaFact> numa;
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::int64_t memory = 0;        // bytes
  std::int64_t scratch_free = 0;  // bytes; 0 without a scratch directory
  std::string boot_id;
  std::string kernel;
  std::string hostname;
};

NodeFacts discover_node(const std::string& scratch_dir);

// For a node that declares more CPUs than its machine has: the machine's CPUs that stand for these
// CPUs of the node, each once. `shared` are the machine's CPUs; empty: each CPU stands for itself.
std::vector<std::uint16_t> cpus_here(std::vector<std::uint16_t> cpus,
                                     const std::vector<std::uint16_t>& shared);

double load_average();            // average of the last minute
std::int64_t available_memory();  // bytes, MemAvailable

// The NUMA nodes of this machine and their distances, as its kernel reports them.

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
  // CPUs' own node. kNumaUnknown if either is not known. A node below 0 means that the device's
  // node is not known; it counts as the CPUs' own.
  [[nodiscard]] std::uint32_t distance(std::span<const std::uint16_t> cpus, int node) const;

 private:
  std::map<std::uint16_t, int> node_of_;                  // by CPU
  std::map<int, std::map<int, std::uint32_t>> distance_;  // distance by both nodes: from, to
};

}  // namespace gantry::runtime
