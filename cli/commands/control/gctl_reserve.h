// gctl reserve, reservations, unreserve: nodes set aside for a time.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlReserve;
extern const Command kGctlReservations;
extern const Command kGctlUnreserve;

}  // namespace gantry::cli
