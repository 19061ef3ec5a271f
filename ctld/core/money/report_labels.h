// Labels of jobs in the ledger: those of controller.report_labels, as a job has them when it
// starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctld/core/state/state.h"

namespace gantry::core {

// A tenant has at most this many different texts in the ledger, because users choose the values.
// Each later text has the value "other" for all labels.
inline constexpr std::size_t kMostReportedLabels = 1'000;
inline constexpr std::string_view kOtherLabel = "other";

// A line KEY=VALUE for each of `keys` that the job has, in their order; "" if it has none.
std::string reported_labels(const State& state, const Job& job,
                            const std::vector<std::string>& keys);
// The value of one key in such a text; "" if the key is not there.
std::string label_in(std::string_view labels, std::string_view key);
// Returns the same as one line, "team=nlp,code=p7". In values a backslash stands before each comma
// and each backslash.
std::string line_of_labels(std::string_view labels);
// Returns the word of kLabelsWordBytes characters that stands for these labels at the end of a key
// of the ledger. There are 2^64 such words.
std::string labels_word(std::string_view labels);
inline constexpr std::size_t kLabelsWordBytes = 11;

}  // namespace gantry::core
