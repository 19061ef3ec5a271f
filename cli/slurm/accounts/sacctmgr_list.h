// The listings of sacctmgr.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/slurm/accounts/sacctmgr_fields.h"
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

}  // namespace gantry::cli::slurm
