// gctl service: services, what they need and why, and their rollouts.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlService;

}  // namespace gantry::cli
