// Columns of the job queue.
#pragma once

#include <span>

#include "cli/table.h"
#include "common/proto/job_query.h"

namespace gantry::cli {

struct JobView {
  const proto::JobRow* row = nullptr;
  Instant now{};  // cluster time when the listing was made
};

inline const proto::JobRow& row_of(const JobView& view) {
  return *view.row;
}

std::span<const Column<JobView>> job_columns();

inline constexpr std::string_view kQueueFormat = "%.10i %.9P %.8j %.8u %.2t %.10M %.6D %R";
inline constexpr std::string_view kQueueLongFormat = "%.10i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
inline constexpr std::string_view kQueueStartFormat = "%.10i %.9P %.8j %.8u %.2t %.19S %.6D %R";
inline constexpr std::string_view kQueueCostFormat =
    "%.10i %.9P %.8j %.8u %.2t %.10M %.6D %.6b %.10X %.12x";
inline constexpr std::string_view kQueueWhyFormat = "%.10i %.9P %.8u %.19S %w";

}  // namespace gantry::cli
