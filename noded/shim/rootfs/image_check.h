// noded.image_check: a program of the operator's looks at each image before its first use on the
// node, and may refuse it.
#pragma once

#include <string>

#include "noded/shim/shim.h"

namespace gantry::runtime {

// `tree` is the unpacked image in the node's cache. A program that let it pass is not asked again,
// as long as neither the program's file nor its arguments change. permission_denied: it refused;
// the message is the last line that it said.
Result<void> check_image(const Shim& shim, const std::string& name, const std::string& tree,
                         Signals& signals);

// An image that can change after it was looked at cannot be used where images are looked at.
Result<void> check_directory(const Shim& shim, const std::string& path);

}  // namespace gantry::runtime
