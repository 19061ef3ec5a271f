// The order of sinfo's lines: Slurm's sort keys.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/slurm/records/node_fields.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// Whether `keys` are letters of sinfo's -o, each with + (default) or - in front, parted by commas;
// #P is the order in which the configuration has the partitions. The error is Slurm's.
Result<void> check_node_sort(std::string_view keys);

// Sorts stably. `partitions` are in the order of the configuration.
void sort_node_lines(std::vector<NodeLine>& lines, std::string_view keys,
                     std::span<const proto::PartitionRow> partitions);

}  // namespace gantry::cli::slurm
