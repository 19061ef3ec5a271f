// The answer of `--test-only` about a job that nobody has submitted yet.
#pragma once

#include <optional>
#include <vector>

#include "common/job/job_shape.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct AdvanceReservation;
struct Partition;

struct Forecast {
  Instant start{};                   // now, or when enough jobs have reached their limits
  std::vector<NodeId> nodes;         // nodes that it would take then
  std::vector<std::uint32_t> tasks;  // tasks on each of them
  std::uint32_t cores = 0;           // cores on all of them
};

// When and where the job would start if it were the first in the queue and every running job ran to
// its limit. nullopt if it would still not fit, because of jobs without a limit or nodes out of
// service. It walks about a dozen times over the partition's nodes and jobs. With `within`, only
// nodes of this reservation count, whatever its time is.
std::optional<Forecast> forecast(const Context& ctx, const Partition& partition,
                                 const JobShape& shape, const AdvanceReservation* within = nullptr);

}  // namespace gantry::core
