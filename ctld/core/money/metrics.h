// The text of the controller's GET /metrics for one tenant or for all: counters of the ledger over
// all time, what is held now, and budgets. The cost grows with series and running jobs; the sums of
// single months are not looked at.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/state/state.h"

namespace gantry::core {

// `tenant`: only its series; unset: all. Returns the text format of Prometheus.
std::string metrics_text(const State& state, Instant now, const std::optional<std::string>& tenant);

}  // namespace gantry::core
