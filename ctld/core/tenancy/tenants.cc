#include "ctld/core/tenancy/tenants.h"

#include <algorithm>

#include "common/proto/budget.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/recorder.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/quota_alerts.h"
#include "ctld/core/turn_out.h"
#include "ctld/core/view_memory.h"
#include "ctld/sched/tenant/amount.h"

namespace gantry::core {
namespace {

std::vector<NodeTraits> traits_of(const State& state) {
  std::vector<NodeTraits> out;
  for (const Node& node : state.nodes) {
    NodeTraits& traits = out.emplace_back();
    traits.name = node.name;
    if (node.declared == nullptr) continue;
    traits.gpu_model = node.declared->gpu_model;
    traits.features = node.declared->features;
  }
  return out;
}

void make_quota(Context& ctx) {
  ctx.rt.tenancy->quota.emplace(ctx.state.tenancy.compiled.view);
  ctx.state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.placed())
      for (const NodeRun& run : job.active->nodes)
        if (run.state != RunState::released) use_quota(ctx, job, run.grant);
    return true;
  });
}

// The documents, with approved increases added to the quota.
Documents with_increases(const State& state, const Documents& documents) {
  Documents out = documents;
  for (const auto& [number, increase] : state.budgets.increases) {
    if (increase.state != proto::IncreaseState::approved || !increase.quota) continue;
    const auto it = out.find({tenancy::Tenant::kKind, increase.tenant});
    if (it == out.end()) continue;
    for (tenancy::QuotaLine& line : std::get<tenancy::Tenant>(it->second).quota)
      if (line.resource == increase.resource && line.flavor == increase.flavor)
        line.nominal += *increase.quota;
  }
  return out;
}

LooseTenants loose_tenants(const Config& config) {
  return config.controller.one_cohort ? LooseTenants::one_cohort : LooseTenants::apart;
}

}  // namespace

void compile_tenancy(Context& ctx) {
  const State& state = ctx.state;
  CompiledTenancy compiled = compile(
      with_increases(state, state.tenancy.documents), state.tenancy.class_names, traits_of(state),
      state.tenancy.revision, state.tenancy.half_life, loose_tenants(ctx.config));
  drop_ended_grants(compiled, ctx.now);
  if (weighted(ctx.config)) {  // the weighted sum replaces the Fair Tree order
    auto view = std::make_shared<sched::Tenancy>(*compiled.view);
    view->fair_share = false;
    compiled.view = std::move(view);
  }
  ctx.recorder.set_tenancy(std::move(compiled));
  make_quota(ctx);
  quota_reckoned(ctx);
  if (!ctx.rt.running) return;
  make_views(ctx);
  tell_tenancy(ctx, ctx.turn.changes);
  ctx.rt.views->fits.clear();
  state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.phase == Phase::queued) ctx.touched.jobs.push_back(job.id);
    if (job.placed()) ctx.turn.changes.emplace_back(placed_view(state, job));
    return true;
  });
  ctx.turn.schedule = true;
}

CompiledTenancy compile_for(const Context& ctx, const Documents& documents) {
  return compile_for(ctx.state, documents, loose_tenants(ctx.config));
}

CompiledTenancy compile_for(const State& state, const Documents& documents, LooseTenants loose) {
  std::vector<std::string> classes = state.tenancy.class_names;
  for (std::string& name : new_class_names(documents, classes)) classes.push_back(std::move(name));
  return compile(with_increases(state, documents), classes, traits_of(state),
                 state.tenancy.revision + 1, state.tenancy.half_life, loose);
}

sched::QuotaNeed quota_need(const CompiledTenancy& compiled, const sched::NodeGrant& grant) {
  const std::size_t n = grant.node.value();
  return {n < compiled.nodes.size() ? compiled.nodes[n].flavor : 0, sched::amount_of(grant)};
}

sched::QuotaNeed quota_need(const State& state, const sched::NodeGrant& grant) {
  return quota_need(state.tenancy.compiled, grant);
}

sched::QuotaNeed quota_need(const State& state, const std::vector<sched::NodeGrant>& grants) {
  sched::QuotaNeed sum;
  for (const sched::NodeGrant& grant : grants) {
    const sched::QuotaNeed need = quota_need(state, grant);
    sum.flavor = need.flavor;
    sum.amount += need.amount;
  }
  return sum;
}

std::optional<std::uint32_t> quota_node_of(const State& state, PartitionId partition) {
  const CompiledTenant* tenant = tenant_of(state, state.partition(partition));
  if (tenant == nullptr) return std::nullopt;
  return tenant->quota_node;
}

void use_quota(Context& ctx, const Job& job, const sched::NodeGrant& grant) {
  if (const auto node = quota_node_of(ctx.state, class_of(ctx.state, job).partition))
    ctx.rt.tenancy->quota->add(*node, quota_need(ctx.state, grant));
}

namespace {

void give_back(Context& ctx, std::uint32_t node, const sched::QuotaNeed& need) {
  ctx.rt.tenancy->quota->remove(node, need);
  quota_given_back(ctx, node, need.flavor);
}

}  // namespace

void free_quota(Context& ctx, const Job& job, const sched::NodeGrant& grant) {
  if (const auto node = quota_node_of(ctx.state, class_of(ctx.state, job).partition))
    give_back(ctx, *node, quota_need(ctx.state, grant));
}

Rank rank_of(const State& state, const Job& job, Instant now, Duration age_step) {
  const auto& classes = state.tenancy.compiled.classes;
  const std::uint32_t index = class_of(state, job).priority_class;
  if (index >= classes.size()) return {};
  const tenancy::PriorityClass& own = classes[index];
  Rank rank{own.value, std::nullopt};
  age_step = own.age_step.value_or(age_step);
  if (age_step.us <= 0 || job.phase != Phase::queued) return rank;
  std::int32_t most = std::numeric_limits<std::int32_t>::max();
  for (const tenancy::PriorityClass& c : classes)
    if (c.preempts && c.value > own.value) most = std::min(most, c.value - 1);
  // A small job must not first gain the age with which it goes before all others, and then ask for
  // more.
  const Instant since = std::max(job.eligible, job.asked_more);
  const std::int64_t steps = std::max<std::int64_t>(0, (now - since).us) / age_step.us;
  rank.value = static_cast<std::int32_t>(std::min<std::int64_t>(most, own.value + steps));
  rank.raised = rank.value > own.value;
  if (rank.value < most) rank.next = since + age_step * (steps + 1);
  return rank;
}

sched::ShareChanged share_view(const State& state, const ShareNode& node) {
  sched::ShareChanged view{node.id, node.parent, 1, node.usage};
  if (!node.parent) return view;  // between tenants the quota decides
  const auto& shares = state.tenancy.shares;
  const ShareNode& parent = shares[node.parent->value()];
  const bool project = !parent.parent;
  const CompiledTenant* tenant =
      state.tenancy.tenant(project ? parent.name : shares[parent.parent->value()].name);
  if (tenant == nullptr) return view;
  for (const tenancy::Project& p : tenant->effective.projects) {
    if (project && p.name == node.name) view.shares = p.shares;
    if (project || p.name != parent.name) continue;
    for (const tenancy::UserShare& user : p.users)
      if (user.user == node.name) view.shares = user.shares;
  }
  return view;
}

sched::ReservationChanged reservation_view(const State& state, const AdvanceReservation& r) {
  sched::ReservationChanged view{r.name, r.nodes, r.from, r.until, {}, r.maintenance, false, {}};
  if (r.repeats) {
    Repetition next = *r.repeats;
    while (view.later.size() < kLaterOccurrences)
      view.later.push_back(occurrence_of(next = next_of(next)));
  }
  for (const std::string& name : r.tenants)
    if (const CompiledTenant* tenant = state.tenancy.tenant(name))
      view.quota_nodes.push_back(tenant->quota_node);
  return view;
}

void tell_tenancy(const Context& ctx, std::vector<sched::Change>& out) {
  out.emplace_back(sched::TenancyChanged{ctx.state.tenancy.compiled.view});
  for (const sched::NodeChanged& node : ctx.rt.views->nodes) out.emplace_back(node);
  // Queues of removed tenants are included, because they belong to no tenant any more.
  for (const sched::PartitionChanged& partition : ctx.rt.views->partitions)
    out.emplace_back(partition);
  for (const ShareNode& node : ctx.state.tenancy.shares)
    out.emplace_back(share_view(ctx.state, node));
  for (const auto& [name, r] : ctx.state.tenancy.reservations)
    out.emplace_back(reservation_view(ctx.state, r));
}

void tell_shares(Context& ctx) {
  std::vector<sched::ShareId>& touched = ctx.touched.shares;
  if (touched.empty()) return;
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const sched::ShareId id : touched)
    ctx.turn.changes.emplace_back(share_view(ctx.state, ctx.state.tenancy.shares[id.value()]));
  touched.clear();
}

}  // namespace gantry::core
