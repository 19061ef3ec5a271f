#include "ctld/core/job/submit/rates.h"

#include <fmt/core.h>

#include <algorithm>

#include "ctld/core/context.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/tenant_submit.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

bool limits(const tenancy::Tenant& tenant, Resource resource) {
  const auto most = [&](const std::optional<Resources>& of_job) {
    return of_job && (*of_job)[resource] != 0;
  };
  return most(tenant.jobs.max_per_job) || most(tenant.jobs.max_per_node) ||
         std::any_of(tenant.quota.begin(), tenant.quota.end(),
                     [&](const tenancy::QuotaLine& line) { return line.resource == resource; });
}

}  // namespace

Result<void> check_rates_named(const State& state, const Partition& queue, const JobSpec& spec) {
  const CompiledTenant* tenant = tenant_of(state, queue);
  if (tenant == nullptr) return {};
  const tenancy::Tenant& t = tenant->effective;
  if (spec.io_rate == 0 && limits(t, Resource::io))
    return fail(ErrorCode::invalid_argument,
                fmt::format("the document of tenant {} limits io, so each of its jobs says how "
                            "many bytes per second it needs of the disks of a node: --io=RATE",
                            t.name));
  // The host's network belongs to no job, and loopback uses no link.
  if (spec.network == NetworkMode::job && spec.network_rate == 0 && limits(t, Resource::net))
    return fail(ErrorCode::invalid_argument,
                fmt::format("the document of tenant {} limits net, so each of its jobs with a "
                            "network says how many bits per second it needs of a node's link: "
                            "--net=RATE, or --network=none",
                            t.name));
  return {};
}

Result<void> count_rates(const Context& ctx, const Partition& queue, JobSpec& spec) {
  const bool has_link = spec.network == NetworkMode::job;
  if (const CompiledTenant* tenant = tenant_of(ctx.state, queue)) {
    const tenancy::JobLimits& jobs = tenant->effective.jobs;
    if (spec.io_rate == 0) spec.io_rate = static_cast<std::uint64_t>(jobs.default_io.value_or(0));
    if (spec.network_rate == 0 && has_link)
      spec.network_rate = static_cast<std::uint64_t>(jobs.default_net.value_or(0));
  }
  if (auto r = check_rates_named(ctx.state, queue, spec); !r) return r;
  spec.shape.io_per_node = static_cast<std::int64_t>(spec.io_rate);
  spec.shape.net_per_node = has_link ? static_cast<std::int64_t>(spec.network_rate) : 0;
  if (spec.shape.io_per_node == 0 && spec.shape.net_per_node == 0) return {};
  return check_reshaped(ctx, queue, spec.shape);
}

}  // namespace gantry::core
