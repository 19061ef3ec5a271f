// The fields that sinfo can show: Slurm's letters, names and headers for partitions and groups of
// nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/slurm/format.h"
#include "common/proto/cluster.h"

namespace gantry::cli::slurm {

// The nodes that one line shows. They belong to a partition, or to none if no field asks for it.
struct NodeLine {
  const proto::PartitionRow* partition = nullptr;
  std::vector<const proto::NodeRow*> nodes;
  std::string_view cluster;
};

std::span<const Field<NodeLine>> node_fields();

// True if the field's value is computed from all nodes of the line: counts, lists, A/I/O/T.
bool is_of_all(std::size_t field);
// True if the field's value belongs to the partition, not to the nodes.
bool is_of_partition_field(std::size_t field);

// The GPUs of a node: "gpu:a100:4", "gpu:2", "(null)". The models are known only if the request for
// nodes asked for GPUs.
std::string gres_text(const proto::NodeRow& node);
std::string gres_used_text(const proto::NodeRow& node);  // "gpu:a100:2(IDX:0-1)", "gpu:0"

// Resources as "cpu=64,mem=250G,billing=64,gres/gpu=4"; "" if there are none.
std::string tres_of(const Resources& r, bool billing);

// The states IDLE, MIXED, ALLOCATED, DOWN, with +DRAIN, +MAINTENANCE, +NOT_RESPONDING, as scontrol
// joins them.
std::vector<std::string> state_words(const proto::NodeRow& node);

}  // namespace gantry::cli::slurm
