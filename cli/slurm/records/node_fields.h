// The fields that sinfo can show: Slurm's letters, names and headers for partitions and groups of
// nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/columns/node_values.h"
#include "cli/slurm/format.h"

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

}  // namespace gantry::cli::slurm
