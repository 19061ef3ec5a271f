// The checks of `gantry check`.
#pragma once

#include <string>
#include <vector>

#include "common/proto/cluster.h"

namespace gantry::cli {

// A line for each thing that is wrong, in the order of the nodes: "n1: ...".
std::vector<std::string> check_cluster(const std::vector<proto::NodeRow>& nodes);

// A line for each isolation layer that is off, with the nodes where it is and why: "n[1-2]:
// networks of jobs: ...". No fault of the cluster: this is what its machines can do.
std::vector<std::string> layers_that_are_off(const std::vector<proto::NodeRow>& nodes);

}  // namespace gantry::cli
