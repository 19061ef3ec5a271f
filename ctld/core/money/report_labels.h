// Labels of jobs in the ledger: those of controller.report_labels, as a job has them when it
// starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctld/core/state/state.h"

namespace gantry::core {

// A tenant has at most this many different texts in the ledger; what comes later has the value
// "other" for each of its labels, because users choose values.
inline constexpr std::size_t kMostReportedLabels = 1'000;
inline constexpr std::string_view kOtherLabel = "other";

// A line KEY=VALUE for each of `keys` that the job has, in their order; "" = it has none.
std::string reported_labels(const State& state, const Job& job,
                            const std::vector<std::string>& keys);
// The value of one key in such a text; "" = none.
std::string label_in(std::string_view labels, std::string_view key);
// The same as one line, "team=nlp,code=p7": in values a '\\' stands before each ',' and '\\'.
std::string line_of_labels(std::string_view labels);
// Ends a key of the ledger for these labels: one of 2^64 words of kLabelsWordBytes.
std::string labels_word(std::string_view labels);
inline constexpr std::size_t kLabelsWordBytes = 11;

}  // namespace gantry::core
