// Limits of an account in Slurm's words (GrpTRES=gres/gpu=8), stored as a tenant has them: as
// quota, as numbers of jobs, and as limits of one job.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "common/tenancy/tenancy.h"

namespace gantry::cli::slurm {

// Sets the limit `key` (in lower case); a value of -1 removes the limit. Returns false if a tenant
// has no such limit. It is an error if the value is no limit, or names a resource that quota does
// not know.
Result<bool> set_limit(tenancy::Tenant& tenant, const std::string& key, const std::string& value);

// The tenant's own quota over all flavors: "cpu=100,gres/gpu=8"; "" if it has none.
std::string group_tres(const tenancy::Tenant& tenant);

// The most that a job, or a node of it, may have: "cpu=4,mem=8G"; "" if there is no such limit.
std::string most_tres(const std::optional<Resources>& most);

}  // namespace gantry::cli::slurm
