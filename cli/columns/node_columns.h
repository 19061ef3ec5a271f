// Columns of ginfo: groups of nodes that are alike, within one partition or over all nodes.
#pragma once

#include <span>

#include "cli/columns/node_values.h"
#include "cli/table.h"

namespace gantry::cli {

std::span<const Column<NodeGroup>> node_columns();

inline constexpr std::string_view kInfoFormat = "%9P %5a %.10l %.6D %6t %N";
inline constexpr std::string_view kInfoNodeFormat = "%10N %.6D %9P %6t";
inline constexpr std::string_view kInfoNodeLongFormat = "%8N %9P %10T %.4c %.7z %.6m %8f %E";
inline constexpr std::string_view kInfoLongFormat = "%9P %5a %.10l %.10s %.6D %11T %N";
inline constexpr std::string_view kInfoReasonFormat = "%20E %9u %19H %N";
inline constexpr std::string_view kInfoSummaryFormat = "%9P %5a %.10l %.16F %N";

}  // namespace gantry::cli
