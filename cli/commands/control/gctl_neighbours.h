// gctl neighbours: who shares a job's nodes, who held it up, and what was done about it.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlNeighbours;

}  // namespace gantry::cli
