// The daemon's work on the node's image cache: it tidies the cache when it starts, and lists
// images.
#pragma once

#include <string>

#include "config/config.h"

namespace gantry::node {

// Removes what interrupted fetches have left, and images over the cache's size.
void tidy_images(const NodedConfig& config);

// Makes one line for each image, for gantry-noded --images; only root can read the cache.
std::string image_table(const NodedConfig& config);

}  // namespace gantry::node
