// The drawing of `ginfo --layout` and the comparison of `ginfo --drift`.
#pragma once

#include <string>
#include <vector>

#include "common/proto/cluster.h"

namespace gantry::cli {

// A line for each GPU of the nodes: its slices with their jobs, what is free, and what is out of
// service. A line has at most `width` columns, but never fewer than its slices need.
std::vector<std::string> layout_lines(const std::vector<proto::NodeRow>& nodes,
                                      std::uint32_t width);

// A difference between what should be there and what was found: a GPU that is missing or out of
// service; a driver or model that differs from most nodes or from the other GPUs of its node; a
// slice that a job was given and that does not exist; or a slice that no job holds.
struct Drift {
  std::string node;
  std::string gpu;  // index of the GPU, "3"; "" = the difference concerns the node
  std::string wanted, found;
  friend bool operator==(const Drift&, const Drift&) = default;
};
std::vector<Drift> drift_of(const std::vector<proto::NodeRow>& nodes);

}  // namespace gantry::cli
