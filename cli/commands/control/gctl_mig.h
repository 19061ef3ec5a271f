// gctl mig: shows where an operator would have to switch MIG mode.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlMig;

}  // namespace gantry::cli
