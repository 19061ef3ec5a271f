// gctl who-can: who has a right in a tenant.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlWhoCan;

}  // namespace gantry::cli
