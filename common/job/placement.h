// Whose a job is, and what a node gives to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/resources/gpu.h"
#include "common/resources/gres.h"
#include "common/types.h"

namespace gantry {

// The user whom a job belongs to and runs as. It comes from the authenticated connection, never
// from a request.
struct Owner {
  Uid uid{};
  Gid gid{};
  std::string user;         // login name
  std::vector<Gid> groups;  // supplementary groups
  std::string home;
  std::string shell;
  friend bool operator==(const Owner&, const Owner&) = default;
  GANTRY_FIELDS(FIELD(1, uid), FIELD(2, gid), FIELD(3, user), FIELD(4, groups), FIELD(5, home),
                FIELD(6, shell))
};

// What one node gives to one attempt of a job: individual CPUs, memory, GPUs and devices.
struct NodePlacement {
  std::string node;                 // name
  std::vector<std::uint16_t> cpus;  // logical CPU numbers, sorted
  std::int64_t memory = 0;          // bytes, the limit
  std::int64_t scratch = 0;         // bytes
  std::uint32_t tasks = 0;          // ranks of a whole-job step here
  std::vector<GpuGrant> gpus;
  std::vector<GresGrant> gres{};
  friend bool operator==(const NodePlacement&, const NodePlacement&) = default;
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, cpus), FIELD(3, memory), FIELD(4, scratch),
                FIELD(5, tasks), FIELD(6, gpus), FIELD(7, gres))
};

}  // namespace gantry
