// Limits of an account in Slurm's words (GrpTRES=gres/gpu=8), as a tenant has them: quota, counts
// and what one job may ask for.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "common/tenancy/tenancy.h"

namespace gantry::cli::slurm {

// Sets what `key` (in lower case) says; a value of -1 takes the limit away. False: it is no limit
// that a tenant has. Errors: the value is none, or names a resource that quota does not know.
Result<bool> set_limit(tenancy::Tenant& tenant, const std::string& key, const std::string& value);

// "cpu=100,gres/gpu=8" of its own quota in all flavors; "" = none.
std::string group_tres(const tenancy::Tenant& tenant);

}  // namespace gantry::cli::slurm
