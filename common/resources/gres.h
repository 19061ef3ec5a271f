// Generic resources: what a node's configuration declares by name besides cores, memory and GPUs
// (capture cards, FPGAs, licences of a node). The structs describe them as jobs ask for them and as
// nodes give them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/fields.h"

namespace gantry {

inline constexpr std::size_t kMostGresNames = 8;           // different names in one cluster
inline constexpr std::uint32_t kMostGresCount = 1024;      // of one name on one node
inline constexpr std::uint32_t kMostLicenses = 1'000'000;  // of one name in the cluster

// Number asked for on each node, or number that a node has; for licences, number in the cluster.
struct GresCount {
  std::string name;
  std::uint32_t count = 0;  // 1..kMostGresCount
  friend auto operator<=>(const GresCount&, const GresCount&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, count))
};

struct GresGrant {  // what a job gets of one name on one node
  std::string name;
  std::vector<std::uint16_t> devices;  // sorted places among the node's devices
  friend bool operator==(const GresGrant&, const GresGrant&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, devices))
};

// Amounts by the place of the name in the cluster's sorted list of names.
using GresAmounts = std::array<std::int16_t, kMostGresNames>;

// Text like "fpga:2,license:1"; "" if there is nothing.
std::string to_string(const std::vector<GresCount>& gres);

}  // namespace gantry
