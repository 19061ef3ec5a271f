// Names in a question that mean nothing: a listing of an unknown user, partition or tenant would be
// empty, which looks as if there were no jobs. The commands say instead that there is no such name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/session.h"

namespace gantry::cli {

// Names that rows of a reply had: these exist, whatever this machine knows.
struct NamesSeen {
  std::set<std::string> users, partitions, tenants;
  void add(const proto::JobRow& row);
};

// An error for the first name that no row had and that is neither a user of this machine nor a
// partition of the cluster that the asker may see. The controller is asked only if a partition was
// not seen.
Result<void> check_names(Session& session, const proto::JobFilter& filter, const NamesSeen& seen);

// The same for tenants alone, or partitions that bear their names.
Result<void> check_tenants(Session& session, const std::vector<std::string>& tenants,
                           const std::set<std::string>& seen);

// The error for a user that neither a row nor this machine knows.
Result<void> check_users(const std::vector<std::string>& users, const std::set<std::string>& seen);

}  // namespace gantry::cli
