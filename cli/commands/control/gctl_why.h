// gctl why: shows what a job waits for, and what would make it start sooner.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlWhy;

}  // namespace gantry::cli
