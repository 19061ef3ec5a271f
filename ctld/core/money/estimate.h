// The expected cost of a job that has not started, for `gbatch --test-only` and the answer to a
// submit.
#pragma once

#include <optional>

#include "common/job/job_spec.h"
#include "common/money/money.h"
#include "ctld/core/resources/forecast.h"
#include "ctld/core/state/bill.h"

namespace gantry::core {

struct Estimate {
  Money per_hour;                 // of one task, now, on the dearest nodes that it may get
  std::optional<Money> expected;  // one task, run to its limit from the expected start and place
  std::optional<Money> most;      // all tasks run to their limits, at the highest known prices; a
                                  // requeued job may cost as much again
};

// nullopt if there are no prices. `where`: the expected place and start, if known. `spec` has been
// validated.
std::optional<Estimate> estimate_cost(const Context& ctx, const Partition& partition,
                                      const JobSpec& spec, std::optional<Duration> limit,
                                      const Forecast* where);

// The least that a queued job costs if it runs to its limit: on the cheapest nodes that hold it, at
// the lowest known prices, apart from rounding. nullopt without a limit, or if the job fits on no
// node. The search stops at a cost of `enough` or less, so such a result may be more than the
// least.
std::optional<Money> least_cost(const Context& ctx, const Job& job, Money enough);
// The bill of a queued job on as few nodes as it may get, if all are like this one.
Bill bill_on_nodes_like(const Context& ctx, const Job& job, NodeId node);

}  // namespace gantry::core
