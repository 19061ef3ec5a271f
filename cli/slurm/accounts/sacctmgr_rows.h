// The rows of sacctmgr's listings of accounts, users, associations and QOS, made from the tenants'
// documents.
#pragma once

#include <string>
#include <vector>

#include "cli/slurm/accounts/sacctmgr_fields.h"
#include "common/proto/tenancy.h"

namespace gantry::cli::slurm {

// The user restricts a listing by names and by conditions of the form KEY=VALUE.
struct Conditions {
  std::vector<std::string> names, users, accounts, clusters, parents;
  std::string format;
  bool with_associations = false;
  bool with_clusters = false;  // of resources: the part of each cluster
  std::vector<std::string> servers;
  bool without_limits = false;  // wopl: the associations alone
};

struct Tenants {
  std::vector<Entry> accounts, associations, qos;  // associations: of accounts and of users
};

Tenants read_tenants(const proto::TenancyDocuments& documents, const Conditions& c,
                     const std::string& cluster);

}  // namespace gantry::cli::slurm
