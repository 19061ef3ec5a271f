// The sub-commands of gctl. Each file cmd_gctl_NAME.cc has a namespace gctl_NAME.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

namespace gctl_audit {
extern const Command kGctlAudit;
}
namespace gctl_enroll {
extern const Command kGctlEnroll;
}
namespace gctl_logs {
extern const Command kGctlLogs;
}
namespace gctl_maintenance {
extern const Command kGctlMaintenance;
}
namespace gctl_mig {
extern const Command kGctlMig;
}
namespace gctl_neighbours {
extern const Command kGctlNeighbours;
}
namespace gctl_network {
extern const Command kGctlNetwork;
}
namespace gctl_partition {
extern const Command kGctlPartition;
}
namespace gctl_reserve {
extern const Command kGctlReserve, kGctlReservations, kGctlUnreserve;
}
namespace gctl_service {
extern const Command kGctlService;
}
namespace gctl_show {
extern const Command kGctlShow;
}
namespace gctl_top {
extern const Command kGctlTop;
}
namespace gctl_update {
extern const Command kGctlUpdate, kGctlDrain, kGctlResume, kGctlClose, kGctlDead;
}
namespace gctl_who_can {
extern const Command kGctlWhoCan;
}
namespace gctl_why {
extern const Command kGctlWhy;
}

}  // namespace gantry::cli
