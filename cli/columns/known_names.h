// Unknown names in a query: a listing for an unknown user, partition or tenant would be empty, as
// if there were no jobs. So the commands report that there is no such name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/session.h"

namespace gantry::cli {

// Names in rows of a reply: these exist, whether or not this machine knows them.
struct NamesSeen {
  std::set<std::string> users, partitions, tenants;
  void add(const proto::JobRow& row);
};

// An error for the first name that no row had and that is neither a user of this machine nor a
// partition of the cluster that the asker may see. The controller is asked only if a partition was
// not seen.
Result<void> check_names(Session& session, const proto::JobFilter& filter, const NamesSeen& seen);

// The same only for tenants, or partitions with their names.
Result<void> check_tenants(Session& session, const std::vector<std::string>& tenants,
                           const std::set<std::string>& seen);

// The error for a user in no row who is not known on this machine either.
Result<void> check_users(const std::vector<std::string>& users, const std::set<std::string>& seen);

}  // namespace gantry::cli
