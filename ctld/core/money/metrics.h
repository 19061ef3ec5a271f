// The text of the controller's GET /metrics for one tenant or for all: counters of the ledger over
// all time, what is held now, also by labels of jobs, and budgets. The time that it takes grows
// with series and running jobs; the sums of single months are not read.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/state/state.h"

namespace gantry::core {

// For each label key, at most this many series are shown, those with the most jobs; the others are
// summed up under the value "other".
inline constexpr std::size_t kMostLabelValues = 50;

// `tenant`: only its series; unset: all. `labels`: the keys by which running jobs are counted.
// Returns the text format of Prometheus.
std::string metrics_text(const State& state, Instant now, const std::optional<std::string>& tenant,
                         const std::vector<std::string>& labels);

}  // namespace gantry::core
