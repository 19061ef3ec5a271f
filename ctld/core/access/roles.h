// Roles of users in tenants and in the cluster, as the grants of the documents give them.
//
// A role is a list of rights (kRights). The roles of a tenant are a ladder: viewer, user,
// tenant-admin. A CustomRole document is one of these without some of its rights. Operator, auditor
// and admin are roles of the whole cluster; an administrator has every right in every tenant.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "common/tenancy/tenancy.h"
#include "ctld/core/request.h"

namespace gantry::core {

using tenancy::TenantRight;

struct State;
struct CompiledTenancy;

struct RightRow {
  TenantRight right;
  tenancy::Role least;  // the lowest role that has the right
};
inline constexpr std::array<RightRow, 9> kRights{{
    {TenantRight::see, tenancy::Role::viewer},
    {TenantRight::submit, tenancy::Role::user},
    {TenantRight::change_jobs, tenancy::Role::tenant_admin},
    {TenantRight::read_output, tenancy::Role::tenant_admin},
    {TenantRight::edit_projects, tenancy::Role::tenant_admin},
    {TenantRight::edit_roles, tenancy::Role::tenant_admin},
    {TenantRight::edit_policies, tenancy::Role::tenant_admin},
    {TenantRight::edit_secrets, tenancy::Role::tenant_admin},
    {TenantRight::ask_increase, tenancy::Role::tenant_admin},
}};

// Whether a grant (of a compiled tenant) gives this right. A CustomRole that is not there any more
// gives none.
bool gives(const CompiledTenancy& compiled, const tenancy::Grant& grant, TenantRight right);

// Whether a grant is to the asker, by name or by a group.
bool is_to(const tenancy::Grant& grant, const Identity& who);

// Whether the asker has the right in the tenant, if there is such a tenant. A request from inside a
// job has at most the rights of an ordinary user.
bool has_right(const State& state, const Identity& who, const std::string& tenant,
               TenantRight right);

// Names of the tenants to which the asker may submit. Being an administrator alone allows no
// submit.
std::vector<std::string> tenants_of(const State& state, const Identity& who);

// GPUs that jobs of the asker may ask for in the tenant: the union of what those grants allow that
// let the asker submit.
struct GpuRight {
  bool any = true;
  std::vector<std::string> models{};  // none = all; only if `any`
};
GpuRight gpu_right(const State& state, const Identity& who, const std::string& tenant);

}  // namespace gantry::core
