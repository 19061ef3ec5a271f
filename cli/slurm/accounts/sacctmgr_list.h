// The listings of sacctmgr.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/slurm/accounts/sacctmgr_rows.h"
#include "common/proto/tenancy.h"
#include "common/result.h"

namespace gantry::cli::slurm {

struct SacctmgrCall {
  bool no_header = false;
  bool parsable = false;
  bool parsable2 = false;
  bool associations = false;
  bool immediate = false;
  bool read_only = false;
};

// `words` has the entity and the conditions. Returns the exit status.
Result<int> list_entities(const Invocation& call, const SacctmgrCall& options,
                          const std::vector<std::string>& words);

// The rows of `show resource`; with_clusters: one for each cluster that has a part.
std::vector<Entry> resource_entries(const proto::TenancyDocuments& documents, bool with_clusters,
                                    const std::vector<std::string>& clusters);

// The listings of sacctmgr that are not made from the tenants' present documents: the configuration
// of accounting, changes of the documents, nodes that are down, and reservations.

// Prints the configuration of the accounting. Returns the exit status.
int show_accounting_config(const Entry& cluster);

// The nodes that are down or drained now, with the reason and since when. Past events are not kept.
Result<std::vector<Entry>> node_events(const std::string& program, const std::string& cluster);

Result<std::vector<Entry>> reservation_entries(const std::string& program,
                                               const std::string& cluster);

// The changes of the tenants' documents, the oldest first.
Result<std::vector<Entry>> transactions(const std::string& program);

}  // namespace gantry::cli::slurm
