// Generic resources: what a node's configuration declares by name besides cores, memory and GPUs
// (capture cards, FPGAs, licences of a node), as jobs ask for them and nodes give them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gantry {

inline constexpr std::size_t kMostGresNames = 8;           // different names in one cluster
inline constexpr std::uint32_t kMostGresCount = 1024;      // of one name on one node
inline constexpr std::uint32_t kMostLicenses = 1'000'000;  // of one name in the cluster

struct GresCount {  // asked on each node; how many a node has. Of licences: of the cluster
  std::string name;
  std::uint32_t count = 0;  // 1..kMostGresCount
  friend auto operator<=>(const GresCount&, const GresCount&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "count", s.count);
  }
};

struct GresGrant {  // of one name on one node: concrete ones
  std::string name;
  std::vector<std::uint16_t> devices;  // places among those that the node has, sorted
  friend bool operator==(const GresGrant&, const GresGrant&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "devices", s.devices);
  }
};

// By place of the name in the cluster's sorted list of names.
using GresAmounts = std::array<std::int16_t, kMostGresNames>;

// "fpga:2,license:1"; "" of nothing.
std::string to_string(const std::vector<GresCount>& gres);

}  // namespace gantry
