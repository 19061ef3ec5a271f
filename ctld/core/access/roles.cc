#include "ctld/core/access/roles.h"

#include <algorithm>

#include "ctld/core/access/authorise.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

using tenancy::Grant;
using tenancy::Role;

namespace {

Role least_role(TenantRight right) {
  const auto it = std::find_if(kRights.begin(), kRights.end(),
                               [&](const RightRow& row) { return row.right == right; });
  return it == kRights.end() ? Role::admin : it->least;
}

const tenancy::CustomRole* custom_of(const CompiledTenancy& compiled, const Grant& grant) {
  const auto it = compiled.roles.find(grant.custom);
  return it == compiled.roles.end() ? nullptr : &it->second;
}

}  // namespace

bool gives(const CompiledTenancy& compiled, const Grant& grant, TenantRight right) {
  if (!grant.custom.empty()) {
    const tenancy::CustomRole* custom = custom_of(compiled, grant);
    if (custom == nullptr) return false;
    const auto& without = custom->without;
    if (std::find(without.begin(), without.end(), enum_name(right)) != without.end()) return false;
  }
  // The roles of the whole cluster include every right of a tenant's roles; only an auditor has no
  // right except seeing.
  return grant.role == Role::auditor ? right == TenantRight::see : grant.role >= least_role(right);
}

bool is_to(const Grant& grant, const Identity& who) {
  return grant.user.empty()
             ? std::find(who.groups.begin(), who.groups.end(), grant.group) != who.groups.end()
             : grant.user == who.owner.user;
}

bool has_right(const State& state, const Identity& who, const std::string& tenant,
               TenantRight right) {
  if (is_admin(who)) return true;
  const CompiledTenant* t = state.tenancy.tenant(tenant);
  if (t == nullptr || (who.inside && least_role(right) > Role::user)) return false;
  const auto& grants = t->effective.grants;
  return std::any_of(grants.begin(), grants.end(), [&](const Grant& grant) {
    return is_to(grant, who) && gives(state.tenancy.compiled, grant, right);
  });
}

std::vector<std::string> tenants_of(const State& state, const Identity& who) {
  std::vector<std::string> out;
  for (const auto& [name, tenant] : state.tenancy.compiled.tenants) {
    const auto& grants = tenant.effective.grants;
    if (std::any_of(grants.begin(), grants.end(), [&](const Grant& grant) {
          return is_to(grant, who) && gives(state.tenancy.compiled, grant, TenantRight::submit);
        }))
      out.push_back(name);
  }
  return out;
}

GpuRight gpu_right(const State& state, const Identity& who, const std::string& tenant) {
  if (is_admin(who)) return {};
  GpuRight out{false, {}};
  const CompiledTenant* t = state.tenancy.tenant(tenant);
  if (t == nullptr) return {};
  for (const Grant& grant : t->effective.grants) {
    if (!is_to(grant, who) || !gives(state.tenancy.compiled, grant, TenantRight::submit)) continue;
    const tenancy::CustomRole* custom =
        grant.custom.empty() ? nullptr : custom_of(state.tenancy.compiled, grant);
    if (custom == nullptr || (custom->gpus.value_or(true) && custom->gpu_models.empty())) return {};
    if (!custom->gpus.value_or(true)) continue;
    out.any = true;
    for (const std::string& model : custom->gpu_models)
      if (std::find(out.models.begin(), out.models.end(), model) == out.models.end())
        out.models.push_back(model);
  }
  return out;
}

}  // namespace gantry::core
