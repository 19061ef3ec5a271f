// Queues: the partitions of the configuration, each tenant's own, and what tenants have in the
// partitions of the configuration.
//
// Once there are tenants, every job is a tenant's. One that is sent to a partition of the
// configuration goes to the tenant's part of it: a queue with the partition's name, limits and
// those of its nodes that the tenant may use, and with the tenant's quota, price and share. Parts
// are made when the first job of a tenant comes, and stay.
#pragma once

#include "ctld/core/context.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// After every compile of the documents: gives each tenant's queue, and what tenants have in
// partitions of the configuration, its nodes and limits.
void make_queues(MutableState& state);
// The same for one partition that a tenant has a part of.
void fill_part(MutableState& state, Partition& part);

// The tenant's part of the partition, which is made if there is none yet. Invalidates references to
// partitions.
const Partition& part_of(Context& ctx, PartitionId partition, const std::string& tenant);

// Whose queue it is; null: nobody's.
const CompiledTenant* tenant_of(const State& state, const Partition& queue);
const CompiledTenant* tenant_of(const State& state, const Job& job);
// "" = nobody's.
std::string tenant_name_of(const State& state, const Partition& queue);

// A partition of the configuration, where there are tenants: no job starts in it, jobs belong into
// its parts.
bool owes_tenant(const State& state, const Partition& queue);

}  // namespace gantry::core
