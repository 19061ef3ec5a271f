// What a job would count for limits of use, by what it asks for, and what it counts once placed.
#include <algorithm>

#include "ctld/core/limits/limits.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/tenant_submit.h"

namespace gantry::core {
namespace {

using tenancy::TresAmounts;

void add_resources(const Resources& r, TresAmounts& out) {
  out["cpu"] = r[Resource::cpu] / kCoreUnit;
  if (r[Resource::memory] > 0) out["mem"] = r[Resource::memory] >> 20;
  if (r[Resource::gpu] > 0) out["gres/gpu"] = (r[Resource::gpu] + kGpuUnit - 1) / kGpuUnit;
}

const std::string& weights_of(const Partition& queue) {
  static const std::string kNone;
  return queue.declared == nullptr ? kNone : queue.declared->billing_weights;
}

}  // namespace

UseDemand demand_of_shape(const JobShape& shape, const Partition& queue) {
  UseDemand out;
  add_resources(asked_of_quota(shape, queue), out.job);
  add_resources(asked_on_node(shape, queue), out.node);
  out.job["node"] = std::max(1u, shape.min_nodes);
  for (const std::string& model : shape.gpu_models)
    if (shape.gpu_models.size() == 1 && shape.gpus_per_node > 0) {
      out.node["gres/gpu:" + model] = shape.gpus_per_node;
      out.job["gres/gpu:" + model] = std::int64_t{shape.gpus_of(std::max(1u, shape.min_nodes))};
    }
  for (const GresCount& g : shape.gres) {
    out.node["gres/" + g.name] = g.count;
    out.job["gres/" + g.name] = std::int64_t{g.count} * std::max(1u, shape.min_nodes);
  }
  for (const GresCount& g : shape.licenses) out.job["license/" + g.name] = g.count;
  out.job["billing"] = tenancy::billing_of(out.job, weights_of(queue));
  out.required_nodes = shape.required_nodes;
  return out;
}

UseDemand demand_of(const State& state, const Job& job) {
  const sched::ClassKey& key = class_of(state, job);
  const Partition& queue = state.partition(key.partition);
  UseDemand out = demand_of_shape(key.shape, queue);
  out.key = use_key_of(state, job);
  out.user = state.names.text(job.user);
  out.tenant = tenant_name_of(state, queue);
  out.account = state.names.text(job.account);
  out.limit = key.time_limit;
  return out;
}

UseDemand demand_of_submit(const State& state, const Owner& owner, const Partition& queue,
                           const JobSpec& spec, std::optional<Duration> limit) {
  UseDemand out = demand_of_shape(spec.shape, queue);
  const auto& names = state.tenancy.class_names;
  const auto qos = std::find(names.begin(), names.end(), spec.priority_class);
  if (qos != names.end()) out.key.qos = static_cast<std::uint32_t>(qos - names.begin());
  out.key.partition = queue.id;
  out.key.uid = owner.uid;
  out.user = owner.user;
  out.tenant = tenant_name_of(state, queue);
  out.account = spec.account;
  out.limit = limit;
  if (!out.tenant.empty()) out.key.share = share_of(state, out.tenant, out.account, out.user);
  return out;
}

UseOfJob use_of_job(const State& state, const Job& job,
                    const std::vector<sched::NodeGrant>& grants) {
  const sched::ClassKey& key = class_of(state, job);
  const Partition& queue = state.partition(key.partition);
  UseOfJob use;
  for (const sched::NodeGrant& grant : grants) {
    use.tres["cpu"] += static_cast<std::int64_t>(grant.cpus.size());
    use.tres["mem"] += grant.memory >> 20;
    use.tres["node"] += 1;
    const auto gpus =
        static_cast<std::int64_t>(std::max<std::size_t>(grant.gpus, grant.devices.size()));
    if (gpus > 0) {
      use.tres["gres/gpu"] += gpus;
      const NodeConfig* declared = state.node(grant.node).declared;
      if (declared != nullptr && !declared->gpu_model.empty())
        use.tres["gres/gpu:" + declared->gpu_model] += gpus;
    }
    for (const GresGrant& g : grant.gres)
      use.tres["gres/" + g.name] += static_cast<std::int64_t>(g.devices.size());
  }
  for (const GresCount& g : key.shape.licenses) use.tres["license/" + g.name] = g.count;
  use.tres["billing"] = tenancy::billing_of(use.tres, weights_of(queue));
  use.qos = key.priority_class;
  use.partition_qos = partition_qos(state, queue);
  const auto& limits = state.tenancy.compiled.class_limits;
  if (use.qos < limits.size()) use.factor = limits[use.qos].usage_factor;
  return use;
}

}  // namespace gantry::core
