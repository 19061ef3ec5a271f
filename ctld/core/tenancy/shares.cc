#include "ctld/core/tenancy/shares.h"

#include <algorithm>

#include "common/assert.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/sched/tenant/amount.h"
#include "ctld/sched/tenant/decay.h"

namespace gantry::core {
namespace {

using sched::ShareId;

ShareId node_for(MutableState& state, std::optional<ShareId> parent, const std::string& name) {
  TenancyState& tenancy = state.tenancy;
  const auto key = std::tuple{parent, name};
  if (const auto it = tenancy.share_ids.find(key); it != tenancy.share_ids.end()) return it->second;
  const ShareId id(static_cast<std::uint32_t>(tenancy.shares.size()));
  ShareNode& node = tenancy.shares.emplace_back();
  node.id = id;
  node.parent = parent;
  node.name = name;
  tenancy.share_ids.emplace(key, id);
  state.unfolded.shares.push_back(id);
  state.touched.shares.push_back(id);
  return id;
}

void change_rate(MutableState& state, const Job& job, Instant at, double by,
                 std::uint32_t running) {
  TenancyState& tenancy = state.tenancy;
  for (std::optional<ShareId> at_node = job.share; at_node;
       at_node = tenancy.shares[at_node->value()].parent) {
    ShareNode& node = tenancy.shares[at_node->value()];
    sched::advance(node.usage, at, tenancy.half_life);
    node.running += running;
    // With no attempt left the rate is set to exactly zero, because floating-point sums do not
    // cancel out.
    node.usage.rate = node.running == 0 ? 0 : node.usage.rate + by;
    state.unfolded.shares.push_back(node.id);
    state.touched.shares.push_back(node.id);
  }
}

}  // namespace

ShareId share_for(MutableState& state, const std::string& tenant, const std::string& project,
                  const std::string& user) {
  const ShareId top = node_for(state, std::nullopt, tenant);
  const ShareId middle = node_for(state, top, project.empty() ? tenant : project);
  return node_for(state, middle, user);
}

bool has_share(const State& state, const std::string& tenant, const std::string& user) {
  const auto& ids = state.tenancy.share_ids;
  const auto top = ids.find({std::nullopt, tenant});
  if (top == ids.end()) return false;
  for (auto project = ids.lower_bound({top->second, std::string()});
       project != ids.end() && std::get<0>(project->first) == top->second; ++project)
    if (ids.contains({project->second, user})) return true;
  return false;
}

void set_share(MutableState& state, Job& job) {
  const std::string& queue = state.partition(class_of(state, job).partition).payer();
  job.share.reset();
  if (state.tenancy.has_tenant(queue))
    job.share = share_for(state, queue, state.names.text(job.account), state.names.text(job.user));
}

void start_charge(MutableState& state, const Job& job, Instant at) {
  start_use(state, job, at);
  if (job.share) change_rate(state, job, at, job.active->charge, 1);
}

void end_charge(MutableState& state, const Job& job, Instant at) {
  end_use(state, job, at);
  if (job.share) change_rate(state, job, at, -job.active->charge, std::uint32_t(-1));
}

double charge_of(const State& state, const std::vector<sched::NodeGrant>& grants) {
  const CompiledTenancy& compiled = state.tenancy.compiled;
  double sum = 0;
  for (const sched::NodeGrant& grant : grants) {
    const std::size_t n = grant.node.value();
    const std::uint32_t flavor = n < compiled.nodes.size() ? compiled.nodes[n].flavor : 0;
    const auto& charge = compiled.view->flavors.at(flavor).charge;
    const Resources amount = sched::amount_of(grant);
    for (std::size_t r = 0; r < kResourceCount; ++r)
      sum += charge[r] * static_cast<double>(amount.raw()[r]);
  }
  return sum;
}

}  // namespace gantry::core
