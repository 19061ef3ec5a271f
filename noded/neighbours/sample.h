// Counters of one node at one moment. All are totals since some moment in the past, as in the
// kernel; noded/sampling reads them, and tests make them up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/time/time.h"

namespace gantry::neighbours {

// The time during which at least one task waited: "some" of the kernel's pressure files.
struct Stalled {
  Duration cpu{}, memory{}, io{};
};

struct DiskCount {
  std::string name;  // "nvme0n1"
  Duration busy{};   // the time during which at least one request was in flight
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
};

enum class Direction : std::uint8_t { in, out };

struct LinkCount {   // one direction of a link
  std::string name;  // "eth0"
  Direction direction = Direction::in;
  std::uint64_t bytes = 0;
  std::uint64_t drops = 0;
  std::uint64_t bytes_per_second = 0;  // its capacity; 0 = not known
};

struct DiskUse {  // counters of one job on one disk
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t operations = 0;
  std::uint64_t limit = 0;  // its limit in bytes per second; 0 = none
  bool held = false;        // throttled here for the sake of others, so it waits for that
};

struct JobCount {
  proto::AttemptKey key;
  std::vector<std::uint16_t> cpus;  // sorted; empty = all CPUs of the node
  Duration cpu{};                   // processor time
  Duration throttled{};             // time throttled by its own quota of processor time
  std::int64_t memory = 0;          // bytes in use now
  std::int64_t memory_limit = 0;    // 0 = none
  std::optional<Stalled> stalled;   // unset: the kernel does not count it for each job
  std::vector<DiskUse> disks;
  std::optional<std::uint64_t> network_in, network_out;  // bytes over its own link
  std::uint64_t network_limit = 0;  // limit in bytes per second each way; 0 = none
  std::optional<std::uint64_t>
      memory_traffic;                 // bytes to and from memory, where resctrl counts them
  std::optional<std::uint64_t> pcie;  // PCIe bytes of its GPUs
};

struct Sample {
  Instant at{};
  std::uint32_t cpus = 0;
  Duration cpu{};  // processor time of all cores
  std::int64_t memory_used = 0;
  std::optional<Stalled> stalled;
  std::vector<DiskCount> disks;
  std::vector<LinkCount> links;
  std::optional<std::uint64_t> memory_traffic;  // of all jobs, with the capacity of the machine
  std::uint64_t memory_traffic_most = 0;        // capacity in bytes per second
  std::optional<std::uint64_t> pcie;
  std::uint64_t pcie_most = 0;  // capacity in bytes per second
  std::vector<JobCount> jobs;   // sorted by key
};

}  // namespace gantry::neighbours
