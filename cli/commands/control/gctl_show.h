// gctl show ...: its sub-commands, for the table in cmd_gctl.cc.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlShow;

}  // namespace gantry::cli
