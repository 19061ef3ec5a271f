// What sinfo can show: Slurm's letters, names and headers for partitions and groups of nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/slurm/format.h"
#include "common/proto/cluster.h"

namespace gantry::cli::slurm {

// Nodes that one line shows; of a partition, or of none when no field asks for one.
struct NodeLine {
  const proto::PartitionRow* partition = nullptr;
  std::vector<const proto::NodeRow*> nodes;
  std::string_view cluster;
};

std::span<const Field<NodeLine>> node_fields();

// Whether the value of a field is that of all nodes together: counts, lists, A/I/O/T.
bool is_of_all(std::size_t field);
// Whether a field is the partition's, not the nodes'.
bool is_of_partition_field(std::size_t field);

// "gpu:a100:4", "gpu:2", "(null)"; models are known when the node's GPUs were asked for.
std::string gres_text(const proto::NodeRow& node);
std::string gres_used_text(const proto::NodeRow& node);  // "gpu:a100:2(IDX:0-1)", "gpu:0"

// "cpu=64,mem=250G,billing=64,gres/gpu=4" of a node's resources; "" of none.
std::string tres_of(const Resources& r, bool billing);

// IDLE, MIXED, ALLOCATED, DOWN, with +DRAIN, +MAINTENANCE, +NOT_RESPONDING, as scontrol joins them.
std::vector<std::string> state_words(const proto::NodeRow& node);

}  // namespace gantry::cli::slurm
