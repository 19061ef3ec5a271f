// Nodes as Slurm's data_parser shows them.
#pragma once

#include <vector>

#include "cli/slurm/json.h"
#include "common/proto/cluster.h"

namespace gantry::cli::slurm {

Tree node_tree(const proto::NodeRow& node);

// The list that sinfo prints: an entry for each partition and state.
Tree sinfo_tree(const std::vector<proto::PartitionRow>& partitions,
                const std::vector<proto::NodeRow>& nodes, const std::string& cluster);

}  // namespace gantry::cli::slurm
