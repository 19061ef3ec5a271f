// gctl maintenance: rolling maintenance of nodes.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlMaintenance;

}  // namespace gantry::cli
