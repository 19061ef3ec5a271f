// gctl maintain: rolling maintenance of nodes.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlMaintain;

}  // namespace gantry::cli
