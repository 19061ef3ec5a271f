// How lines in a node's layers_off begin that the controller goes by.
#pragma once

#include <string_view>

namespace gantry::proto {

// A node that makes no networks for jobs; why follows.
inline constexpr std::string_view kNoJobNetworks = "networks of jobs: ";

}  // namespace gantry::proto
