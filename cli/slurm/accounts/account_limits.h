// Limits of an account in Slurm's words (GrpTRES=gres/gpu=8). For a tenant, those of cores, memory
// and GPUs are quota and limits of one job; all others, and all limits of its projects and users,
// are limits of use (Tenant::associations).
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
// no such limit. It is an error if the value is not valid.
Result<bool> set_limit(tenancy::Tenant& tenant, const AccountOfLimit& of, const std::string& key,
                       const std::string& value);

// The limits of use of the account or user, by their names in documents.
tenancy::LimitTexts limits_of_use(const tenancy::Tenant& tenant, const AccountOfLimit& of);
void put_limits_of_use(tenancy::Tenant& tenant, const AccountOfLimit& of,
                       const tenancy::LimitTexts& texts);
// Removes the limits of an account with its users, or of a user in the account ("" = in all).
void drop_limits_of_use(tenancy::Tenant& tenant, const AccountOfLimit& of);

// The tenant's own quota over all flavors: "cpu=100,gres/gpu=8"; "" if it has none.
std::string group_tres(const tenancy::Tenant& tenant);

// The most that a job, or a node of it, may have: "cpu=4,mem=8G"; "" if there is no such limit.
std::string most_tres(const std::optional<Resources>& most);

// Slurm's keys of limits of use, old and new ones (GrpCPUs, GrpTRES), as limits of the documents
// (common/tenancy/use_limits.h).

struct LimitKey {
  std::string_view name;   // as Slurm writes it
  std::size_t least;       // shortest abbreviation, in letters
  std::string_view limit;  // name of the limit of the document
  std::string_view tres;   // the only TRES of the key; "" = the value names them
};

// The key of a QOS, or of an association, that has this prefix (in lower case); null if there is
// none.
const LimitKey* qos_limit_key(std::string_view word);
const LimitKey* association_limit_key(std::string_view word);

// The value in the form that the limit of the document takes: "8" of GrpCPUs is "cpu=8".
std::string limit_value(const LimitKey& key, std::string_view value);

// Sets the limit in the texts; an error in Slurm's words if the value is not valid.
Result<void> put_limit(tenancy::LimitTexts& texts, const LimitKey& key, std::string_view value);

}  // namespace gantry::cli::slurm
