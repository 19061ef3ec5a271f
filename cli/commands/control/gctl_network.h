// gctl network: what jobs reach, and whether an address answers one.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlNetwork;

}  // namespace gantry::cli
