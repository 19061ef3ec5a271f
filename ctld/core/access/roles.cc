#include "ctld/core/access/roles.h"

#include <algorithm>

#include "ctld/core/access/authorise.h"

namespace gantry::core {

using tenancy::Role;

namespace {

std::optional<Role> granted(const CompiledTenant& tenant, const Identity& who) {
  std::optional<Role> best;
  for (const tenancy::Grant& grant : tenant.effective.grants) {
    const bool mine = grant.user.empty() ? std::find(who.groups.begin(), who.groups.end(),
                                                     grant.group) != who.groups.end()
                                         : grant.user == who.owner.user;
    if (mine && (!best || grant.role > *best)) best = grant.role;
  }
  // A request from a job acts for its owner as an ordinary user, and administers nothing.
  if (best && who.inside) best = std::min(*best, Role::user);
  return best;
}

}  // namespace

std::optional<Role> role_in(const State& state, const Identity& who, const std::string& tenant) {
  if (is_admin(who)) return Role::admin;
  const CompiledTenant* t = state.tenancy.tenant(tenant);
  return t == nullptr ? std::nullopt : granted(*t, who);
}

std::vector<std::string> tenants_of(const State& state, const Identity& who) {
  std::vector<std::string> out;
  for (const auto& [name, tenant] : state.tenancy.compiled.tenants)
    if (granted(tenant, who).value_or(Role::viewer) >= Role::user) out.push_back(name);
  return out;
}

}  // namespace gantry::core
