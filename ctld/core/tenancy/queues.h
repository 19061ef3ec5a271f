// Queues: the configured partitions, each tenant's own queue, and the parts that tenants have of
// configured partitions.
//
// Once there are tenants, every job belongs to one. A job for a configured partition goes into its
// tenant's part of it. A part is a queue with the partition's name and limits, those of its nodes
// that the tenant may use, and the tenant's quota, price and share. It is made for the tenant's
// first job in the partition, and is never removed.
#pragma once

#include "ctld/core/context.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// Call it after every compile of the documents: gives tenants' queues and their parts of configured
// partitions their nodes and limits.
void make_queues(MutableState& state);
// The same for a single part.
void fill_part(MutableState& state, Partition& part);

// The tenant's part of the partition; it is made if there is none yet. This invalidates references
// to partitions.
const Partition& part_of(Context& ctx, PartitionId partition, const std::string& tenant);

// The tenant that has the queue; null if no tenant has it.
const CompiledTenant* tenant_of(const State& state, const Partition& queue);
const CompiledTenant* tenant_of(const State& state, const Job& job);
// "" if no tenant has the queue.
std::string tenant_name_of(const State& state, const Partition& queue);
std::string tenant_name_of(const State& state, const Job& job);

// True if new jobs may go into the tenant's own queue, which has the tenant's name. A tenant whose
// document says `own_queue: false` has such a queue only as long as gantry.yaml has no default
// partition. Jobs that are in the queue when it is closed stay in it, and are counted and charged
// there.
bool has_open_queue(const State& state, const std::string& tenant);

// True for a whole configured partition if there are tenants: no job starts in it, because jobs
// belong into its parts.
bool owes_tenant(const State& state, const Partition& queue);

}  // namespace gantry::core
