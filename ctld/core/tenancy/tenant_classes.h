// Which priority class a job gets, and whether it may have the one that it names.
#pragma once

#include "common/job/job_spec.h"
#include "common/tenancy/tenancy.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct CompiledTenant;

// Fills in or checks the job's priority class (QOS); its account has been resolved. `tenant` is
// null if the job belongs to no tenant.
Result<void> resolve_class(const State& state, const Identity& who, const CompiledTenant* tenant,
                           JobSpec& spec);
// Checks the tenant's own priority class that the job names.
Result<void> resolve_tenant_class(const tenancy::Tenant& tenant, const JobSpec& spec);

}  // namespace gantry::core
