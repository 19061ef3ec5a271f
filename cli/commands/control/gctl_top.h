// gctl top: shows how jobs use their GPUs now.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlTop;

}  // namespace gantry::cli
