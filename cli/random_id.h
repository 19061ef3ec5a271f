// Unique ids for requests, by which the controller recognises a repeated request.
#pragma once

#include <string>

namespace gantry::cli {

std::string random_id();  // 32 hex digits from the kernel

}  // namespace gantry::cli
