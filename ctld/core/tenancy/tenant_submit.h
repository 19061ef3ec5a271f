// The tenant's part of a submit: the job's queue, account and class, and whether the tenant's
// limits can ever allow the job. A job that can never fit is refused here, with numbers. One that
// can fit later is queued, and its verdict says what it waits for.
#pragma once

#include "common/job/job_shape.h"
#include "common/job/job_spec.h"
#include "common/tenancy/tenancy.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"
#include "ctld/core/state/node.h"

namespace gantry::core {

// The queue and account that a submit or an update asks for.
struct QueueWish {
  std::string partition;     // "" = not named
  std::string account;       // a project or a tenant; "" = not named
  std::string present = {};  // the present tenant of a waiting job; "" = none
};

// The queue for this wish. The tenant is the one that partition or account names, else the asker's
// only one. Without tenants it is the named partition or the default one. A tenant's part of a
// configured partition is made when it is first asked for, so references to partitions from before
// become invalid.
Result<const Partition*> choose_queue(Context& ctx, const Identity& who, const QueueWish& wish);

// A user, and whether all projects are open to the user. A user belongs to the projects that name
// the user, and to those that name nobody; admins of the tenant and of the cluster may charge all
// projects of the tenant.
struct Payer {
  std::string user;
  bool all_projects = false;
};
// The projects that `who` may charge in the tenant, for a job of `user`.
Payer payer_of(const State& state, const Identity& who, const std::string& user,
               const std::string& tenant);

// The project that `named` means in the tenant. If `named` is empty or the tenant's name, it is the
// first project that names the user, or else the first open one. Errors: not_found (no such
// project), permission_denied (the user does not belong to it).
Result<std::string> project_of(const Payer& payer, const tenancy::Tenant& tenant,
                               const std::string& named);

// In a tenant's queue: resolves account and priority class, fills in defaults, and checks limits,
// counts, rate and quota. Without a tenant: checks the priority class. `beside` is the number of
// further jobs of the tenant in the same request.
Result<void> check_tenant(Context& ctx, const Identity& who, const Partition& partition,
                          JobSpec& spec, bool test_only, std::uint64_t beside);

// check_reshaped(): the tenant's maxima and quota for a queued job with a new shape, whose range of
// nodes is capped. check_moved(): maxima, quota and counts for a waiting job that goes into another
// queue. check_return(): counts for a job that has ended and waits again.
Result<void> check_reshaped(const Context& ctx, const Partition& queue, JobShape& shape);
Result<void> check_moved(const Context& ctx, const Job& job, const Partition& queue);
Result<void> check_return(const Context& ctx, const Job& job);

// The quota that the whole job would use in its tenant, as far as the request tells. Parts and
// slices of GPUs count by their weight; for a slice it is a lower bound.
Resources asked_of_quota(const JobShape& shape, const Partition& queue);
// The same on each of its nodes.
Resources asked_on_node(const JobShape& shape, const Partition& queue);

}  // namespace gantry::core
