// What `--test-only` can say of a job that nobody has submitted yet.
#pragma once

#include <optional>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

struct Forecast {
  Instant start{};                   // now, or when enough of what runs has reached its time limit
  std::vector<NodeId> nodes;         // those that it would take then
  std::vector<std::uint32_t> tasks;  // on each
  std::uint32_t cores = 0;           // on all of them
};

// As if it were the first in the queue, and every running job took all its time; nothing if it
// would still not fit, as jobs without a limit or nodes out of service are in its way. It costs a
// dozen looks at the partition's nodes and jobs.
std::optional<Forecast> forecast(const Context& ctx, const Partition& partition,
                                 const JobShape& shape);

}  // namespace gantry::core
