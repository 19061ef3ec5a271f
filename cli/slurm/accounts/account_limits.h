// Limits of an account in Slurm's words (GrpTRES=gres/gpu=8). A tenant has cores, memory and GPUs
// of them as quota and as limits of one job; all others, and all those of its projects and users,
// are limits of use (Tenant::associations).
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "common/tenancy/tenancy.h"
#include "common/tenancy/use_limits.h"

namespace gantry::cli::slurm {

// An account of the tenant (the tenant itself, or a project), or a user in it.
struct AccountOfLimit {
  std::string account;
  std::string user = {};
};

// Sets the limit `key` (in lower case); a value of -1 removes the limit. Returns false if there is
// no such limit. It is an error if the value is none.
Result<bool> set_limit(tenancy::Tenant& tenant, const AccountOfLimit& of, const std::string& key,
                       const std::string& value);

// The limits of use of the account or user, by their names in documents.
tenancy::LimitTexts limits_of_use(const tenancy::Tenant& tenant, const AccountOfLimit& of);
void put_limits_of_use(tenancy::Tenant& tenant, const AccountOfLimit& of,
                       const tenancy::LimitTexts& texts);
// Forgets the limits of an account with its users, or of a user in the account ("" = in all).
void drop_limits_of_use(tenancy::Tenant& tenant, const AccountOfLimit& of);

// The tenant's own quota over all flavors: "cpu=100,gres/gpu=8"; "" if it has none.
std::string group_tres(const tenancy::Tenant& tenant);

// The most that a job, or a node of it, may have: "cpu=4,mem=8G"; "" if there is no such limit.
std::string most_tres(const std::optional<Resources>& most);

}  // namespace gantry::cli::slurm
