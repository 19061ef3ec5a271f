// Unique ids for requests, so that a repeated one is recognised.
#pragma once

#include <string>

namespace gantry::cli {

std::string random_id();  // 32 hex digits from the kernel

}  // namespace gantry::cli
