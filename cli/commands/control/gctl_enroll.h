// gctl enroll: keys of nodes, and tokens by which nodes enroll themselves.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlEnroll;

}  // namespace gantry::cli
