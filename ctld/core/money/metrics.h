// What the controller's GET /metrics shows: counters of the ledger over all time, what is held now,
// and budgets, of one tenant or of all. Costs as many steps as there are series and running jobs;
// no sum of a month is looked at.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/state/state.h"

namespace gantry::core {

// `tenant`: only its series; unset: all. The text format of Prometheus.
std::string metrics_text(const State& state, Instant now, const std::optional<std::string>& tenant);

}  // namespace gantry::core
