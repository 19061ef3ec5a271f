// Why a batch script could not be started, in words that tell its owner what to change.
#pragma once

#include <string>

#include "noded/shim/shim.h"

namespace gantry::runtime {

// `error` is the errno of the exec of the script. A missing file is the program in the script's
// first line, because the script itself is there: "/usr/bin/fish does not exist on n1 (...)".
std::string script_failure(const Shim& shim, int error);

}  // namespace gantry::runtime
