#include "ctld/core/tenancy/share_lines.h"

#include <algorithm>

#include "ctld/core/state/state.h"
#include "ctld/sched/tenant/decay.h"

namespace gantry::core {

ShareLine ShareLines::line(sched::ShareId id) const {
  const ShareNode& node = ctx_.state.tenancy.shares[id.value()];
  return {&node, shares_of(node),
          sched::amount_at(node.usage, ctx_.now, ctx_.state.tenancy.half_life), node.usage.rate};
}

std::vector<ShareLine> ShareLines::children_of(std::optional<sched::ShareId> parent) const {
  if (!children_) {
    children_.emplace(ctx_.state.tenancy.shares.size());
    for (const ShareNode& node : ctx_.state.tenancy.shares)
      (node.parent ? (*children_)[node.parent->value()] : tops_).push_back(node.id);
  }
  std::vector<ShareLine> out;
  for (const sched::ShareId id : parent ? (*children_)[parent->value()] : tops_)
    out.push_back(line(id));
  std::stable_sort(out.begin(), out.end(), [](const ShareLine& a, const ShareLine& b) {
    // a.shares / a.usage > b.shares / b.usage, without dividing by zero. Nodes without shares come
    // last.
    const bool none_a = a.shares == 0, none_b = b.shares == 0;
    if (none_a != none_b) return none_b;
    return a.shares * b.usage > b.shares * a.usage;
  });
  return out;
}

double ShareLines::shares_of(const ShareNode& node) const {
  if (!node.parent) return 1;  // between tenants the quota decides
  const auto& shares = ctx_.state.tenancy.shares;
  const ShareNode& parent = shares[node.parent->value()];
  const bool project = !parent.parent;
  const auto& projects = projects_of(project ? parent.name : shares[parent.parent->value()].name);
  const auto it = projects.find(project ? node.name : parent.name);
  if (it == projects.end()) return 1;
  if (project) return it->second.first;
  const auto user = it->second.second.find(node.name);
  return user == it->second.second.end() ? 1 : user->second;
}

const std::map<std::string_view, ShareLines::OfProject>& ShareLines::projects_of(
    const std::string& tenant) const {
  const auto [it, made] = projects_.try_emplace(tenant);
  const CompiledTenant* compiled = made ? ctx_.state.tenancy.tenant(tenant) : nullptr;
  if (compiled == nullptr) return it->second;
  for (const tenancy::Project& p : compiled->effective.projects) {
    OfProject& entry = it->second[p.name];
    entry.first = p.shares;
    for (const tenancy::UserShare& user : p.users) entry.second[user.user] = user.shares;
  }
  return it->second;
}

}  // namespace gantry::core
