#include "ctld/core/tenancy/queues.h"

#include <algorithm>

#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/recorder.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// The smaller of two limits; an unset one is no limit.
template <class T>
std::optional<T> least(const std::optional<T>& a, const std::optional<T>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// A tenant's own queue, in the form of a configured partition.
PartitionConfig queue_of(const State& state, const CompiledTenant& tenant) {
  const tenancy::Tenant& t = tenant.effective;
  PartitionConfig queue;
  queue.name = t.name;
  queue.default_time = t.jobs.default_time;
  queue.max_time = t.jobs.max_time;
  queue.max_nodes = t.jobs.max_nodes;
  queue.default_memory_per_cpu = t.jobs.default_memory_per_cpu;
  // Without its own queue, the network is decided by the partitions, and this tenant's queue is
  // none of them.
  queue.allow_host_network = t.own_queue.value_or(true) && t.jobs.host_network.value_or(false);
  for (const std::uint32_t n : tenant.nodes)
    if (state.nodes[n].declared != nullptr) queue.nodes.push_back(state.nodes[n].name);
  return queue;
}

// A tenant's part of a configured partition: what both of them allow.
PartitionConfig part_config(const PartitionConfig& whole, const CompiledTenant& tenant) {
  const tenancy::Tenant& t = tenant.effective;
  PartitionConfig part = whole;
  part.is_default = false;
  part.max_time = least(whole.max_time, t.jobs.max_time);
  part.default_time = whole.default_time ? whole.default_time : t.jobs.default_time;
  if (part.default_time) part.default_time = least(part.default_time, part.max_time);
  part.max_nodes = least(whole.max_nodes, t.jobs.max_nodes);
  if (!part.default_memory_per_cpu) part.default_memory_per_cpu = t.jobs.default_memory_per_cpu;
  part.allow_host_network = whole.allow_host_network && t.jobs.host_network.value_or(false);
  part.host_network_by_default = whole.host_network_by_default && part.allow_host_network;
  return part;
}

void close(Partition& queue) {
  queue.declared = nullptr;
  queue.nodes.clear();
}

}  // namespace

void fill_part(MutableState& state, Partition& part) {
  TenancyState& tenancy = state.tenancy;
  close(part);
  tenancy.parts.erase(part.key());
  const Partition* whole = state.partition_named(part.name);
  const CompiledTenant* tenant = tenancy.tenant(part.tenant);
  if (whole == nullptr || whole->declared == nullptr || tenant == nullptr ||
      tenancy.queues.contains(part.name))
    return;
  PartitionConfig config = part_config(*whole->declared, *tenant);
  config.nodes.clear();
  for (const NodeId id : whole->nodes) {
    if (!std::binary_search(tenant->nodes.begin(), tenant->nodes.end(), id.value())) continue;
    part.nodes.push_back(id);
    config.nodes.push_back(state.node(id).name);
  }
  part.declared = &(tenancy.parts[part.key()] = std::move(config));
}

void make_queues(MutableState& state) {
  TenancyState& tenancy = state.tenancy;
  for (Partition& p : state.partitions)
    if (const auto it = tenancy.queues.find(p.key());
        it != tenancy.queues.end() && p.declared == &it->second) {
      close(p);
      std::erase(state.partition_order, p.id);
    }
  tenancy.queues.clear();
  for (const auto& [name, tenant] : tenancy.compiled.tenants) {
    const auto id = state.partition_ids.find(name);
    if (id == state.partition_ids.end()) continue;
    Partition& p = state.partition(id->second);
    if (p.declared != nullptr) continue;  // a configured partition has this name
    p.declared = &(tenancy.queues[name] = queue_of(state, tenant));
    for (const std::uint32_t n : tenant.nodes)
      if (state.nodes[n].declared != nullptr) p.nodes.push_back(state.nodes[n].id);
    if (has_open_queue(state, name))
      state.partition_order.push_back(p.id);  // others are not listed
  }
  for (Partition& p : state.partitions)
    if (!p.tenant.empty()) fill_part(state, p);
  state.node_sets = NodeSets(state);
}

const Partition& part_of(Context& ctx, PartitionId partition, const std::string& tenant) {
  const State& state = ctx.state;
  const std::string key = state.partition(partition).name + '/' + tenant;
  if (const auto it = state.partition_ids.find(key); it != state.partition_ids.end())
    return state.partition(it->second);
  const PartitionId id(static_cast<std::uint32_t>(state.partitions.size()));
  ctx.record(event::PartitionDeclared{id, key});
  ctx.recorder.fill_part(id);
  const Partition& part = state.partition(id);
  add_partition_view(ctx, part);
  return part;
}

const CompiledTenant* tenant_of(const State& state, const Partition& queue) {
  if (queue.tenant.empty() && !state.tenancy.queues.contains(queue.name)) return nullptr;
  return state.tenancy.tenant(queue.payer());
}

const CompiledTenant* tenant_of(const State& state, const Job& job) {
  return tenant_of(state, state.partition(class_of(state, job).partition));
}

std::string tenant_name_of(const State& state, const Partition& queue) {
  const CompiledTenant* tenant = tenant_of(state, queue);
  return tenant == nullptr ? queue.tenant : tenant->effective.name;
}

std::string tenant_name_of(const State& state, const Job& job) {
  return tenant_name_of(state, state.partition(class_of(state, job).partition));
}

bool has_open_queue(const State& state, const std::string& tenant) {
  const CompiledTenant* found = state.tenancy.tenant(tenant);
  return found != nullptr && state.tenancy.queues.contains(tenant) &&
         (found->effective.own_queue.value_or(true) || !state.default_partition);
}

bool owes_tenant(const State& state, const Partition& queue) {
  return !state.tenancy.compiled.tenants.empty() && tenant_of(state, queue) == nullptr;
}

}  // namespace gantry::core
