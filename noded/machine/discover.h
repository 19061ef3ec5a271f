// What this machine has: cores, sockets, NUMA nodes, memory, scratch space, boot id.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::runtime {

struct CpuFact {
  std::uint16_t id = 0;    // logical CPU
  std::uint32_t core = 0;  // within its socket
  std::uint32_t socket = 0;
  std::uint16_t numa = 0;
};

struct NumaFact {
  std::uint16_t id = 0;
  std::int64_t memory = 0;  // bytes
};

struct NodeFacts {
  std::vector<CpuFact> cpus;  // those this process may use, by id
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

// Of a node that has more CPUs than its machine: what CPU n of the node is had of, each once.
// `shared`: the machine's; empty: each is what it says.
std::vector<std::uint16_t> cpus_here(std::vector<std::uint16_t> cpus,
                                     const std::vector<std::uint16_t>& shared);

double load_average();            // of the last minute
std::int64_t available_memory();  // bytes, MemAvailable

}  // namespace gantry::runtime
