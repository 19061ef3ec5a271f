// The node's image cache, as the daemon sees it: in order when it starts, and what it holds.
#pragma once

#include <string>

#include "config/config.h"

namespace gantry::node {

// Removes what fetches that were cut off have left, and images over the cache's size.
void tidy_images(const NodedConfig& config);

// A line for each image, for gantry-noded --images: only root can see it.
std::string image_table(const NodedConfig& config);

}  // namespace gantry::node
