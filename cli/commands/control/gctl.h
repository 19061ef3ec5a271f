// The sub-commands of gctl. Each file cmd_gctl_NAME.cc has a namespace gctl_NAME.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

COMMANDS(gctl_audit, kGctlAudit)
COMMANDS(gctl_enroll, kGctlEnroll)
COMMANDS(gctl_logs, kGctlLogs)
COMMANDS(gctl_maintenance, kGctlMaintenance)
COMMANDS(gctl_mig, kGctlMig)
COMMANDS(gctl_neighbours, kGctlNeighbours)
COMMANDS(gctl_network, kGctlNetwork)
COMMANDS(gctl_partition, kGctlPartition)
COMMANDS(gctl_reserve, kGctlReserve, kGctlReservations, kGctlUnreserve)
COMMANDS(gctl_service, kGctlService)
COMMANDS(gctl_show, kGctlShow)
COMMANDS(gctl_top, kGctlTop)
COMMANDS(gctl_update, kGctlUpdate, kGctlDrain, kGctlResume, kGctlClose, kGctlDead)
COMMANDS(gctl_who_can, kGctlWhoCan)
COMMANDS(gctl_why, kGctlWhy)

}  // namespace gantry::cli
