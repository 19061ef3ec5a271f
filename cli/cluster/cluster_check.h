// The checks of `gantry check`.
#pragma once

#include <string>
#include <vector>

#include "common/proto/cluster.h"

namespace gantry::cli {

// A line for each thing that is wrong, in the order of the nodes: "n1: ...".
std::vector<std::string> check_cluster(const std::vector<proto::NodeRow>& nodes);

}  // namespace gantry::cli
