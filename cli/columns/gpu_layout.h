// What `ginfo --layout` draws and `ginfo --drift` compares.
#pragma once

#include <string>
#include <vector>

#include "common/proto/cluster.h"

namespace gantry::cli {

// A line for each GPU of the nodes, `width` columns at most (but never less than what a slice
// needs): its slices with their jobs, what is free, what is out of service.
std::vector<std::string> layout_lines(const std::vector<proto::NodeRow>& nodes,
                                      std::uint32_t width);

// Where what is found is not what is wanted: GPUs that are not there or out of service, drivers
// and models that are not those of most nodes or neighbours, slices that jobs were given and that
// are not there, and slices that nobody has.
struct Drift {
  std::string node;
  std::string gpu;  // its index, "3"; "" = of the node
  std::string wanted, found;
  friend bool operator==(const Drift&, const Drift&) = default;
};
std::vector<Drift> drift_of(const std::vector<proto::NodeRow>& nodes);

}  // namespace gantry::cli
