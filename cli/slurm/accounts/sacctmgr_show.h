// The listings of sacctmgr that are not made from the tenants' present documents: the configuration
// of accounting, changes of the documents, nodes that are down, and reservations.
#pragma once

#include <string>
#include <vector>

#include "cli/slurm/accounts/sacctmgr_fields.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// Prints the configuration of the accounting. Returns the exit status.
int show_accounting_config(const Entry& cluster);

// The nodes that are down or drained now, with the reason and the time since when they are so. What
// is over is not kept.
Result<std::vector<Entry>> node_events(const std::string& program, const std::string& cluster);

Result<std::vector<Entry>> reservation_entries(const std::string& program,
                                               const std::string& cluster);

// The changes of the tenants' documents, the oldest first.
Result<std::vector<Entry>> transactions(const std::string& program);

}  // namespace gantry::cli::slurm
