// The tenants in force: the documents compiled against the present nodes, each tenant's queue as a
// partition, quota in use, and what the scheduler is told of all this.
#pragma once

#include "ctld/core/context.h"
#include "ctld/core/state/tenancy_state.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::core {

// Call it after start() and after every change of the documents. It compiles them, gives each
// tenant's queue its nodes and limits, counts the quota in use again, and (once running) tells the
// scheduler.
void compile_tenancy(Context& ctx);

// Compiles documents against the present nodes; changes nothing.
CompiledTenancy compile_for(const Context& ctx, const Documents& documents);
CompiledTenancy compile_for(const State& state, const Documents& documents, LooseTenants loose);

// The quota that a grant uses in its tenant.
sched::QuotaNeed quota_need(const CompiledTenancy& compiled, const sched::NodeGrant& grant);
sched::QuotaNeed quota_need(const State& state, const sched::NodeGrant& grant);
// All grants of a start together; all must be of one flavor.
sched::QuotaNeed quota_need(const State& state, const std::vector<sched::NodeGrant>& grants);

// The quota node of the queue; nullopt without a tenant.
std::optional<std::uint32_t> quota_node_of(const State& state, PartitionId partition);

void use_quota(Context& ctx, const Job& job, const sched::NodeGrant& grant);
void free_quota(Context& ctx, const Job& job, const sched::NodeGrant& grant);

// The value of the job's priority class, raised by one for each age_step that the job has waited.
// It stays below the lowest class above it that preempts. `next` is the time of the next step, if
// there is one. `age_step` is for classes that set none; 0: these are not raised.
struct Rank {
  std::int32_t value = 0;
  std::optional<Instant> next;
  bool raised = false;
};
Rank rank_of(const State& state, const Job& job, Instant now, Duration age_step = {});

// Adds the changes that tell the scheduler everything, after a compile.
void tell_tenancy(const Context& ctx, std::vector<sched::Change>& out);
void tell_shares(Context& ctx);  // tells the scheduler the shares that were touched
sched::ShareChanged share_view(const State& state, const ShareNode& node);
// The scheduler is told of this many occurrences after the present one: a week of a daily
// reservation. No job that starts now needs more, because each has to end before the next
// occurrence; more only makes starts that are planned far ahead exact.
inline constexpr std::size_t kLaterOccurrences = 7;
sched::ReservationChanged reservation_view(const State& state,
                                           const AdvanceReservation& reservation);

}  // namespace gantry::core
