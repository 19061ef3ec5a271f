// Sorts the lines of sinfo by Slurm's sort keys.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/slurm/records/node_fields.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// Checks `keys`: letters of sinfo's -o, each with + (default) or - before it, separated by commas;
// #P means the order of partitions in the configuration. The error has Slurm's text.
Result<void> check_node_sort(std::string_view keys);

// Sorts stably. `partitions` are in the order of the configuration.
void sort_node_lines(std::vector<NodeGroup>& lines, std::string_view keys,
                     std::span<const proto::PartitionRow> partitions);

}  // namespace gantry::cli::slurm
