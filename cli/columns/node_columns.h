// Columns of ginfo: groups of nodes that are alike, within one partition or over all nodes.
#pragma once

#include <span>
#include <vector>

#include "cli/table.h"
#include "common/proto/cluster.h"

namespace gantry::cli {

// Nodes that have the same value in every column shown.
struct NodeGroup {
  const proto::PartitionRow* partition = nullptr;  // not set: no column of partitions is shown
  std::vector<const proto::NodeRow*> nodes;        // may be empty: a partition without such nodes
};

std::span<const Column<NodeGroup>> node_columns();

// True if the column's value belongs to a partition, or is a sum over the group. The other columns
// decide which nodes are alike.
bool is_of_partition(char letter);
bool is_sum(char letter);

inline constexpr std::string_view kInfoFormat = "%9P %5a %.10l %.6D %6t %N";
inline constexpr std::string_view kInfoNodeFormat = "%10N %.6D %9P %6t";
inline constexpr std::string_view kInfoNodeLongFormat =
    "%10N %.6D %9P %11T %.4c %.8z %.6m %.8d %.8f %20E";
inline constexpr std::string_view kInfoLongFormat = "%9P %5a %.10l %.10s %.6D %11T %N";
inline constexpr std::string_view kInfoReasonFormat = "%20E %9u %19H %N";
inline constexpr std::string_view kInfoSummaryFormat = "%9P %5a %.10l %.16F %N";

}  // namespace gantry::cli
