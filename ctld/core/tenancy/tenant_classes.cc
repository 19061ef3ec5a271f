#include "ctld/core/tenancy/tenant_classes.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ctld/core/access/authorise.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// The QOS that jobs of the user in the account may name, and the default one, if the association of
// the user or of the account sets them; empty = the tenant's.
struct QosOfUser {
  std::vector<std::string> allowed;
  std::string by_default;
};
QosOfUser qos_of_user(const CompiledTenant* tenant, const std::string& account,
                      const std::string& user) {
  QosOfUser out;
  if (tenant == nullptr) return out;
  std::vector<std::string> levels{account + "/" + user, account};
  for (std::string& above : tenancy::projects_above(tenant->effective.projects, account))
    levels.push_back(std::move(above));
  for (const std::string& of : levels) {
    const auto it = tenant->associations.find(of);
    if (it == tenant->associations.end()) continue;
    if (out.allowed.empty()) out.allowed = it->second.qos;
    if (out.by_default.empty()) out.by_default = it->second.default_qos;
  }
  return out;
}

}  // namespace

Result<void> resolve_class(const State& state, const Identity& who, const CompiledTenant* tenant,
                           JobSpec& spec) {
  const auto& classes = state.tenancy.compiled.view->classes;
  const QosOfUser own = qos_of_user(tenant, spec.account, who.owner.user);
  if (spec.priority_class.empty() && !own.by_default.empty() &&
      std::any_of(classes.begin(), classes.end(),
                  [&](const auto& c) { return c.name == own.by_default; })) {
    spec.priority_class = own.by_default;
    return {};
  }
  if (spec.priority_class.empty()) {
    const std::uint32_t index =
        tenant != nullptr ? tenant->default_class : state.tenancy.compiled.default_class;
    spec.priority_class = classes.at(index).name;
    return {};
  }
  std::vector<std::string> allowed;
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    // Jobs that still have a removed class are ordered as jobs of another class; no new job can get
    // it.
    if (state.tenancy.compiled.classes.at(i).name != classes[i].name) continue;
    const bool named =
        std::find(own.allowed.begin(), own.allowed.end(), classes[i].name) != own.allowed.end();
    bool may = is_admin(who) || named;
    if (own.allowed.empty() && tenant == nullptr) may = may || !classes[i].preempts;
    if (own.allowed.empty() && tenant != nullptr)
      may = may ||
            std::binary_search(tenant->allowed_classes.begin(), tenant->allowed_classes.end(), i);
    if (may && classes[i].name == spec.priority_class) return {};
    if (may) allowed.push_back(classes[i].name);
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("priority class \"{}\" is not one of those allowed here: {}",
                          spec.priority_class, fmt::join(allowed, ", ")));
}

Result<void> resolve_tenant_class(const tenancy::Tenant& tenant, const JobSpec& spec) {
  if (spec.tenant_class.empty()) return {};
  std::vector<std::string> names;
  for (const tenancy::TenantClass& c : tenant.classes) {
    if (c.name == spec.tenant_class) return {};
    names.push_back(c.name);
  }
  return fail(
      ErrorCode::not_found,
      fmt::format("tenant {} has no class \"{}\" of its own{}", tenant.name, spec.tenant_class,
                  names.empty() ? "" : fmt::format("; it has {}", fmt::join(names, ", "))));
}

}  // namespace gantry::core
