// The second part of Slurm's --distribution: in which order the tasks of a step get the cores that
// the step has on this node. The function is pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "common/proto/steps.h"

namespace gantry::node {

// Returns the cores in such an order that task i of `tasks` gets the i-th share of them. Each share
// has cores.size() / tasks cores; cores that are left over come last. With `cyclic` the cores of a
// task are of one socket while that socket has enough left, and the next task takes the next
// socket. With `fcyclic` each next core is of the next socket. A core that is missing in
// `socket_of` counts as one of socket 0.
std::vector<std::uint16_t> order_cores(CoreOrder order, std::vector<std::uint16_t> cores,
                                       const std::map<std::uint16_t, std::uint32_t>& socket_of,
                                       std::size_t tasks);

}  // namespace gantry::node
