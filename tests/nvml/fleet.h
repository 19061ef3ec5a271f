// fleet.json says which GPUs a node has.
//
//   { "driver": "550.54.15", "cuda": 12040, "seed": 7,
//     "gpus": [ { "model": "h100", "count": 8, "mig": true, "links": "switch",
//                 "numa": [0, 1], "minors": [3, 2, 1, 0, 7, 6, 5, 4] } ] }
//
// All keys but `model` may be left out. The defaults are one GPU, MIG off, links to switches, NUMA
// nodes 0 and 1 for the two halves, and minors in an order unlike that of the PCI addresses (as on
// real boards). `links` is switch, mesh or none. tests/nvml/models.cc lists the models. UUIDs
// follow from the seed.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"

namespace gantry::fake {

struct State;

struct FleetGpu {
  std::uint32_t model = 0;  // index in models()
  bool mig = false;
  bool switched = true;
  bool linked = true;
  std::int32_t numa = 0;
  std::uint32_t minor = 0;
  std::uint32_t group_first = 0, group_size = 0;
};

struct Fleet {
  std::string driver = "550.54.15";
  std::int32_t cuda = 12040;
  std::uint64_t seed = 1;
  std::vector<FleetGpu> gpus;
};

Result<Fleet> parse_fleet(const std::string& text, const std::string& name);
Result<Fleet> read_fleet(const std::string& path);
void fill(State& state, const Fleet& fleet);  // `state` must be fresh, with all bytes zero

}  // namespace gantry::fake
