#include "ctld/core/tenancy/documents/may_change.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/proto/tenancy.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

using tenancy::Document;
using tenancy::Tenant;

// Grants of roles with rights beyond the tenant.
std::vector<tenancy::Grant> wide_grants(const Tenant& tenant) {
  std::vector<tenancy::Grant> out;
  std::copy_if(tenant.grants.begin(), tenant.grants.end(), std::back_inserter(out),
               [](const tenancy::Grant& g) { return tenancy::of_cluster(g.role); });
  return out;
}

bool has_grant(const Tenant& tenant, const tenancy::Grant& grant) {
  return std::find(tenant.grants.begin(), tenant.grants.end(), grant) != tenant.grants.end();
}

// Whether a partition's list names this project. A tenant's admin must not decide who may use
// partitions, and is not told which partition it is.
bool admits(const Config& config, const std::string& project) {
  return std::any_of(config.partitions.begin(), config.partitions.end(),
                     [&](const PartitionConfig& p) {
                       const auto& list = p.allow_accounts;
                       return std::find(list.begin(), list.end(), project) != list.end();
                     });
}

// An account or user of the tenant that the document limits in the name of the cluster's
// administrators; nullopt if only the tenant as a whole has limits, which apply in all its
// projects.
std::optional<std::string> limited_below(const Tenant& tenant) {
  const auto& rows = tenant.associations;
  const auto it = std::find_if(rows.begin(), rows.end(),
                               [&](const auto& row) { return row.first != tenant.name; });
  return it == rows.end() ? std::nullopt : std::optional(it->first);
}

// Whether a tenant's admin may make this project: not if a partition's list has its name, and not
// if jobs in it would escape a limit of another project or of a user.
Result<void> check_new_project(const Context& ctx, const Identity& who, const Tenant& now,
                               const std::string& project) {
  if (admits(ctx.config, project))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may not make a project of the name {}: an administrator of the "
                            "cluster keeps this name and can make it",
                            who.owner.user, project));
  if (const auto limited = limited_below(now))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may not make project {}: jobs in it would pass by the limits of "
                            "{}; an administrator of the cluster can make it",
                            who.owner.user, project, *limited));
  return {};
}

// The same for a project that is moved under another parent.
Result<void> check_moved_project(const Identity& who, const Tenant& now,
                                 const std::string& project) {
  if (const auto limited = limited_below(now))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may not give project {} another parent: its jobs would pass by the "
                            "limits of {}; an administrator of the cluster can do that",
                            who.owner.user, project, *limited));
  return {};
}

// A grant of a document with the role that a CustomRole is made from.
tenancy::Grant resolved(const CompiledTenancy& compiled, tenancy::Grant grant) {
  const auto it = compiled.roles.find(grant.custom);
  if (it == compiled.roles.end()) return grant;
  for (const auto& [role, name] : enum_names(tenancy::Role{}))
    if (name == it->second.base) grant.role = role;
  return grant;
}

// Whether a user who may edit roles would give with this grant more than the user has: a right, or
// GPUs.
bool gives_more(const State& state, const Identity& who, const std::string& tenant,
                const tenancy::Grant& grant) {
  const CompiledTenancy& compiled = state.tenancy.compiled;
  const tenancy::Grant given = resolved(compiled, grant);
  GpuRight gpus;
  if (const auto it = compiled.roles.find(grant.custom); it != compiled.roles.end())
    gpus = {it->second.gpus.value_or(true), it->second.gpu_models};
  for (const RightRow& row : kRights)
    if (gives(compiled, given, row.right) && !has_right(state, who, tenant, row.right)) return true;
  const GpuRight own = gpu_right(state, who, tenant);
  if (!gpus.any || (own.any && own.models.empty())) return false;
  return !own.any || gpus.models.empty() ||
         std::any_of(gpus.models.begin(), gpus.models.end(), [&](const std::string& model) {
           return std::find(own.models.begin(), own.models.end(), model) == own.models.end();
         });
}

// Whether a grant to a group of the asker would give a right for longer than the asker has the
// right.
bool lasts_longer(const State& state, const Identity& who, const std::string& tenant,
                  const tenancy::Grant& grant) {
  const CompiledTenant* t = state.tenancy.tenant(tenant);
  if (t == nullptr || !is_to(grant, who)) return false;
  const auto& own = t->effective.grants;
  const auto covers = [&](const tenancy::Grant& one, TenantRight right) {
    return is_to(one, who) && gives(state.tenancy.compiled, one, right) &&
           (!one.until || (grant.until && *grant.until <= *one.until));
  };
  const tenancy::Grant given = resolved(state.tenancy.compiled, grant);
  return std::any_of(kRights.begin(), kRights.end(), [&](const RightRow& row) {
    return gives(state.tenancy.compiled, given, row.right) &&
           std::none_of(own.begin(), own.end(),
                        [&](const tenancy::Grant& one) { return covers(one, row.right); });
  });
}

std::string word_of(const tenancy::Grant& grant) {
  return grant.custom.empty() ? std::string(enum_name(grant.role)) : grant.custom;
}

// Whether a user with the right to edit roles may make this change of grants.
Result<void> check_grants(const State& state, const Identity& who, const Tenant& now,
                          const Tenant& then) {
  const auto denied = [&](std::string what) {
    return fail(ErrorCode::permission_denied,
                fmt::format("{} {}", who.owner.user, std::move(what)));
  };
  for (const tenancy::Grant& grant : then.grants) {
    if (has_grant(now, grant)) continue;
    if (tenancy::of_cluster(grant.role) || gives_more(state, who, now.name, grant))
      return denied(fmt::format("may not grant the role {}", word_of(grant)));
    // A user whose role ends at a date must not make it permanent, neither by name nor by a group.
    if (grant.user == who.owner.user || lasts_longer(state, who, now.name, grant))
      return denied(fmt::format("may not grant themselves the role {}", word_of(grant)));
  }
  for (const tenancy::Grant& grant : wide_grants(now))
    if (!has_grant(then, grant))
      return denied(fmt::format("may not take the role {} from {}", enum_name(grant.role),
                                grant.user.empty() ? "group " + grant.group : grant.user));
  return {};
}

// What users of a tenant may change of its document: projects and classes, grants up to their own
// role, each with the right for it. Everything else must stay as it is; the quota can only be read.
Result<void> check_own_tenant(const Context& ctx, const Identity& who, const Tenant& tenant) {
  const State& state = ctx.state;
  const auto denied = [&](std::string what) {
    return fail(ErrorCode::permission_denied,
                fmt::format("{} {}", who.owner.user, std::move(what)));
  };
  const bool projects = has_right(state, who, tenant.name, TenantRight::edit_projects);
  const bool roles = has_right(state, who, tenant.name, TenantRight::edit_roles);
  if (!projects && !roles) return denied(fmt::format("may not change Tenant {}", tenant.name));
  const auto it = state.tenancy.documents.find({Tenant::kKind, tenant.name});
  if (it == state.tenancy.documents.end())
    return denied("may not make a tenant; an administrator of the cluster may");
  const Tenant& now = std::get<Tenant>(it->second);
  Tenant fixed = tenant;
  fixed.projects = now.projects;
  fixed.classes = now.classes;
  fixed.grants = now.grants;
  if (fixed != now)
    return denied(
        fmt::format("may change the projects, classes and grants of tenant {}, and "
                    "nothing else of it",
                    tenant.name));
  if (!projects && (tenant.projects != now.projects || tenant.classes != now.classes))
    return denied(fmt::format("may not change the projects and classes of tenant {}", tenant.name));
  if (!roles && tenant.grants != now.grants)
    return denied(fmt::format("may not change the roles of tenant {}", tenant.name));
  if (auto r = check_grants(state, who, now, tenant); !r) return r;
  for (const tenancy::Project& project : tenant.projects) {
    const auto there =
        std::find_if(now.projects.begin(), now.projects.end(),
                     [&](const tenancy::Project& p) { return p.name == project.name; });
    if (there != now.projects.end()) {
      if (there->parent != project.parent)
        if (auto may = check_moved_project(who, now, project.name); !may) return may;
      continue;
    }
    if (auto may = check_new_project(ctx, who, now, project.name); !may) return may;
  }
  return {};
}

// A policy of a tenant belongs to it: it cannot move from or to another tenant.
bool owns_policy(const State& state, const Identity& who, const std::string& tenant) {
  return !tenant.empty() && has_right(state, who, tenant, TenantRight::edit_policies);
}

// A service belongs to its tenant in the same way. Changing it also means submitting and ending
// jobs.
bool owns_service(const State& state, const Identity& who, const std::string& tenant) {
  return !tenant.empty() && has_right(state, who, tenant, TenantRight::submit) &&
         has_right(state, who, tenant, TenantRight::change_jobs);
}

const tenancy::Service* service_named(const State& state, const std::string& name) {
  const auto it = state.tenancy.documents.find({tenancy::Service::kKind, name});
  return it == state.tenancy.documents.end() ? nullptr : &std::get<tenancy::Service>(it->second);
}

const tenancy::Policy* policy_named(const State& state, const std::string& name) {
  const auto it = state.tenancy.documents.find({tenancy::Policy::kKind, name});
  return it == state.tenancy.documents.end() ? nullptr : &std::get<tenancy::Policy>(it->second);
}

}  // namespace

Result<void> may_change(const Context& ctx, const Identity& who, const Document& document) {
  if (const auto* tenant = std::get_if<Tenant>(&document))
    return check_own_tenant(ctx, who, *tenant);
  if (const auto* policy = std::get_if<tenancy::Policy>(&document)) {
    const tenancy::Policy* now = policy_named(ctx.state, policy->name);
    if (owns_policy(ctx.state, who, policy->tenant) &&
        (now == nullptr || now->tenant == policy->tenant))
      return {};
  }
  if (const auto* service = std::get_if<tenancy::Service>(&document)) {
    const tenancy::Service* now = service_named(ctx.state, service->name);
    if (owns_service(ctx.state, who, service->tenant) &&
        (now == nullptr || now->tenant == service->tenant))
      return {};
  }
  return fail(ErrorCode::permission_denied,
              fmt::format("{} may not change {} {}", who.owner.user, tenancy::kind_of(document),
                          tenancy::name_of(document)));
}

bool may_remove(const State& state, const Identity& who, const proto::DocumentRef& ref) {
  if (is_admin(who)) return true;
  const tenancy::Policy* policy =
      ref.kind == tenancy::Policy::kName ? policy_named(state, ref.name) : nullptr;
  if (policy != nullptr) return owns_policy(state, who, policy->tenant);
  const tenancy::Service* service =
      ref.kind == tenancy::Service::kName ? service_named(state, ref.name) : nullptr;
  return service != nullptr && owns_service(state, who, service->tenant);
}

}  // namespace gantry::core
