// gctl update, drain, resume, close, dead: the commands that change.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlUpdate;
extern const Command kGctlDrain;
extern const Command kGctlResume;
extern const Command kGctlClose;
extern const Command kGctlDead;

}  // namespace gantry::cli
