// The second part of Slurm's --distribution: in which order the tasks of a step get the cores that
// it has on this node. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "common/proto/steps.h"

namespace gantry::node {

// The cores so that task i of `tasks` gets the i-th share of them; each share has
// cores.size() / tasks, what is left over comes last. cyclic: a task's share is of one socket as
// long as one has so many left, and the next task's of the next socket; fcyclic: each core is of
// the next socket. A core that `socket_of` does not know is of socket 0.
std::vector<std::uint16_t> order_cores(CoreOrder order, std::vector<std::uint16_t> cores,
                                       const std::map<std::uint16_t, std::uint32_t>& socket_of,
                                       std::size_t tasks);

}  // namespace gantry::node
