// Other clusters, their accounts and users as rows of sacctmgr's listings.
#pragma once

#include <vector>

#include "cli/slurm/accounts/sacctmgr_fields.h"
#include "common/proto/tenancy.h"

namespace gantry::cli::slurm {

// The associations of all other clusters, cluster by cluster, numbered as Slurm's nested sets.
std::vector<Entry> other_associations(const proto::TenancyDocuments& documents);

// Of these rows, one for each account, in a listing of accounts that has `listed` already.
std::vector<Entry> other_account_rows(const std::vector<Entry>& associations,
                                      const std::vector<Entry>& listed);

// The other clusters themselves, with the limits of their account root.
std::vector<Entry> other_cluster_rows(const proto::TenancyDocuments& documents);

}  // namespace gantry::cli::slurm
