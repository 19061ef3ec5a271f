// The thresholds of saturation and of harm, as data: one row for each kind of thing that jobs
// share.
#pragma once

#include <array>
#include <cstddef>

#include "common/proto/neighbours.h"

namespace gantry::neighbours {

using Resource = proto::SharedResource;

// Shares of 1. A channel is saturated from `saturated` on: of cpu and memory it is the part of the
// time in which somebody on the node waits, of the others the part of what the device can do. A job
// is held up from `harmed` on: by the part of the time in which it waits through no cause of its
// own or, where the kernel does not count that, by how much less than before it gets done.
struct Rule {
  Resource resource = Resource::cpu;
  double saturated = 0;
  double harmed = 0;
};

// What the kernel does not count for a job is seen only from this fall of its throughput on.
inline constexpr double kFall = 0.3;

struct Rules {
  std::array<Rule, 6> rows{{{Resource::cpu, 0.20, 0.15},
                            {Resource::memory, 0.10, 0.10},
                            {Resource::disk, 0.80, 0.20},
                            {Resource::network, 0.70, kFall},
                            {Resource::memory_traffic, 0.80, kFall},
                            {Resource::pcie, 0.80, kFall}}};
  [[nodiscard]] const Rule& of(Resource resource) const {
    return rows[static_cast<std::size_t>(resource) - 1];
  }
  [[nodiscard]] Rule& of(Resource resource) { return rows[static_cast<std::size_t>(resource) - 1]; }
};

}  // namespace gantry::neighbours
