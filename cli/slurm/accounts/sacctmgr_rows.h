// The rows of sacctmgr's listings of accounts, users, associations and QOS, made from the tenants'
// documents.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/slurm/format.h"
#include "common/proto/tenancy.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry::cli::slurm {

// The fields of sacctmgr's listings, in Slurm's order, names and widths.

// An entry is one line of a listing. All kinds of listings use this struct; a member for which a
// listing has no value is empty.
struct Entry {
  std::string cluster, account, parent, user, name, description, organization, qos;
  std::string default_account, admin, type, host, port, rpc, usage_factor;
  // Limits, of an account below root.
  std::string grp_tres, grp_jobs, grp_submit, max_submit, max_tres, max_tres_node, max_nodes;
  std::string max_wall;
  std::map<std::string, std::string> limits;  // of an association of another cluster, by key
  std::string coordinated;                    // the accounts that a user coordinates
  std::string shares, priority, grace, exempt, preempt, default_qos, id, left, right;
  std::string time, action, actor, where, info;        // of a transaction
  std::string start, end, nodes, state, reason, tres;  // of an event or a reservation
};

std::span<const Column<Entry>> entry_fields();

// The layout of a list of fields. As in Slurm, a name may be cut: three letters are enough for most
// of them, fewer for some; the first field with this prefix is meant.
Result<Layout> entry_layout(std::string_view format);

// The user restricts a listing by names and by conditions of the form KEY=VALUE.
struct Conditions {
  std::vector<std::string> names, users, accounts, clusters, parents;
  std::string format;
  bool with_associations = false;
  bool with_clusters = false;  // for resources: list the part of each cluster
  std::vector<std::string> servers;
  bool without_limits = false;  // wopl: only the associations
};

struct Tenants {
  std::vector<Entry> accounts, associations, qos;  // associations of accounts, and of users
};

Tenants read_tenants(const proto::TenancyDocuments& documents, const Conditions& c,
                     const std::string& cluster);

}  // namespace gantry::cli::slurm
