// What a job is given on a node, and whose share it counts for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/fields.h"
#include "common/resources/gpu.h"
#include "common/resources/gres.h"
#include "common/types.h"

namespace gantry::sched {

// A node of the fair-share tree: a tenant (one for each partition), a project of it or a user of a
// project. The usage of a node includes the usage of the nodes below it.
using ShareId = Id<struct ShareTag, std::uint32_t>;

struct NodeGrant {  // complete: the node needs no policy to carry it out
  NodeId node;
  std::vector<std::uint16_t> cpus;  // sorted
  std::int64_t memory = 0;
  std::int64_t scratch = 0;
  std::uint32_t gpus = 0;  // whole GPUs
  std::uint32_t tasks = 0;
  std::vector<GpuGrant> devices;  // one for each GPU or slice
  std::vector<GresGrant> gres{};  // by name
  // The index of the job's address among the node's IPv4 addresses; the core sets it, not the plan.
  std::optional<std::uint32_t> slot{};
  std::int64_t io = 0, net = 0;  // as JobShape::io_per_node and net_per_node
  friend bool operator==(const NodeGrant&, const NodeGrant&) = default;
  // As stored in the core's events.
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, cpus), FIELD(3, memory), FIELD(4, scratch), FIELD(5, gpus),
                FIELD(6, tasks), FIELD(7, devices), FIELD(8, gres), FIELD(9, slot), FIELD(10, io),
                FIELD(11, net))
};

}  // namespace gantry::sched
