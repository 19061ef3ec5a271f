// gctl audit: who did what, from the audit log of the controller on this machine.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlAudit;

}  // namespace gantry::cli
