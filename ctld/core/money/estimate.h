// What a job that has not started would cost, for `gbatch --test-only` and the answer to a submit.
#pragma once

#include <optional>

#include "ctld/core/resources/forecast.h"

namespace gantry::core {

struct Estimate {
  Money per_hour;                 // of one task of an array, now, on the dearest nodes it may get
  std::optional<Money> expected;  // from where and when it would start to its limit; one task
  std::optional<Money> most;  // all tasks to their limits, at the highest prices that are known.
                              // A job that is requeued may cost as much again.
};

// Nothing where there are no prices. `spec` has been validated; `where`: if that is known.
std::optional<Estimate> estimate_cost(const Context& ctx, const Partition& partition,
                                      const JobSpec& spec, std::optional<Duration> limit,
                                      const Forecast* where);

// What a queued job comes to at the least if it runs to its limit: on the cheapest nodes that hold
// it, at the lowest of the prices that are known, but for an hour's rounding. Nothing without a
// limit, or where no node holds it. If it is no more than `enough`, it may be more than the least.
std::optional<Money> least_cost(const Context& ctx, const Job& job, Money enough);
// The bill of a queued job that gets as few nodes as it may, all like this one.
Bill bill_on_nodes_like(const Context& ctx, const Job& job, NodeId node);

}  // namespace gantry::core
