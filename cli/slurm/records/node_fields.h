// The fields that sinfo can show: Slurm's letters, names and headers for partitions and groups of
// nodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/columns/node_values.h"
#include "cli/slurm/format.h"
#include "cli/slurm/json.h"
#include "common/proto/cluster.h"
#include "common/result.h"

namespace gantry::cli::slurm {

std::span<const Column<NodeGroup>> node_fields();

// The GPUs of a node: "gpu:a100:4", "gpu:2", "(null)". The models are known only if the request for
// nodes asked for GPUs.
std::string gres_text(const proto::NodeRow& node);
std::string gres_used_text(const proto::NodeRow& node);  // "gpu:a100:2(IDX:0-1)", "gpu:0"

// Resources as "cpu=64,mem=250G,billing=64,gres/gpu=4"; "" if there are none.
std::string tres_of(const Resources& r, bool billing);

// The states IDLE, MIXED, ALLOCATED, DOWN, with +DRAIN, +MAINTENANCE, +NOT_RESPONDING, as scontrol
// joins them.
std::vector<std::string> state_words(const proto::NodeRow& node);

// Nodes as Slurm's data_parser shows them.

Tree node_tree(const proto::NodeRow& node);

// The list that sinfo prints: an entry for each partition and state.
Tree sinfo_tree(const std::vector<proto::PartitionRow>& partitions,
                const std::vector<proto::NodeRow>& nodes, const std::string& cluster);

// Sorts the lines of sinfo by Slurm's sort keys.

// Checks `keys`: letters of sinfo's -o, each with + (default) or - before it, separated by commas;
// #P means the order of partitions in the configuration. The error has Slurm's text.
Result<void> check_node_sort(std::string_view keys);

// Sorts stably. `partitions` are in the order of the configuration.
void sort_node_lines(std::vector<NodeGroup>& lines, std::string_view keys,
                     std::span<const proto::PartitionRow> partitions);

}  // namespace gantry::cli::slurm
