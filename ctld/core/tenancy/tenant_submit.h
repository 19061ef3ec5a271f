// The tenant's part of a submit: which queue it goes to, as whom, in which class, and whether the
// tenant's limits can ever allow it. What can never fit is refused here, with numbers; what can
// later is queued, and its verdict says what it waits for.
#pragma once

#include "common/tenancy/tenancy.h"
#include "ctld/core/context.h"

namespace gantry::core {

// What a submit or an update says of where the job goes.
struct QueueWish {
  std::string partition;     // "" = not said
  std::string account;       // a project or a tenant; "" = not said
  std::string present = {};  // the tenant that a waiting job has; "" = none
};

// The queue of such a job: of the tenant that is named by partition or account, else of the asker's
// only tenant; where there are no tenants the partition, or the default one. What a tenant has in a
// partition of the configuration is made when it is first asked for, so references to partitions
// from before are invalid.
Result<const Partition*> choose_queue(Context& ctx, const Identity& who, const QueueWish& wish);

// Whom a job is charged to: a user belongs to the projects that name the user and to those that
// name nobody; to the tenant's admins and the cluster's all are open.
struct Payer {
  std::string user;
  bool all_projects = false;
};
// What `who` may charge in the tenant for a job of `user`.
Payer payer_of(const State& state, const Identity& who, const std::string& user,
               const std::string& tenant);

// The project that `named` is in the tenant; with none named, or the tenant, the first that names
// the user, or the first that is open. not_found: there is none such; permission_denied: it is
// others'.
Result<std::string> project_of(const Payer& payer, const tenancy::Tenant& tenant,
                               const std::string& named);

// In the queue of a tenant: resolves account and priority class, fills in defaults, checks limits,
// counts, rate and quota. Where there are no tenants: checks the priority class. `beside` jobs of
// the tenant come with it.
Result<void> check_tenant(Context& ctx, const Identity& who, const Partition& partition,
                          JobSpec& spec, bool test_only, std::uint64_t beside);

// A waiting job is to go into another queue: maxima, counts and quota of the tenant that has it.
// What the tenant can have at all, by a queued job that asks for something else there.
Result<void> check_reshaped(const Context& ctx, const Partition& queue, JobShape& shape);
Result<void> check_moved(const Context& ctx, const Job& job, const Partition& queue);

// What the whole job would hold of its tenant's quota, as far as the request says it: parts and
// slices of GPUs by their weight, a slice by a lower bound.
Resources asked_of_quota(const JobShape& shape, const Partition& queue);

}  // namespace gantry::core
