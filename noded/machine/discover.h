// The resources of this machine: cores, sockets, NUMA nodes, memory, scratch space, boot id.
#pragma once

#include <cstdint>
#include <string>
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

// For a node that is declared with more CPUs than its machine has: the machine's CPUs that stand
// for these CPUs of the node, each once. `shared` are the machine's CPUs; empty: each CPU stands
// for itself.
std::vector<std::uint16_t> cpus_here(std::vector<std::uint16_t> cpus,
                                     const std::vector<std::uint16_t>& shared);

double load_average();            // average of the last minute
std::int64_t available_memory();  // bytes, MemAvailable

}  // namespace gantry::runtime
