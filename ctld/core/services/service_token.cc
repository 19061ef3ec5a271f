#include "ctld/core/services/service_token.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/proto/session.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/request.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// The tenant as which the asker calls services.
Result<std::string> calling_tenant(const State& state, const Identity& who,
                                   const std::string& wanted) {
  if (wanted.empty()) {
    std::vector<std::string> mine = tenants_of(state, who);
    if (mine.size() == 1) return std::move(mine.front());
    if (!mine.empty())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} may submit to several tenants: say which one with --tenant ({})",
                              who.owner.user, fmt::join(mine, ", ")));
    return fail(
        ErrorCode::permission_denied,
        fmt::format("{} may submit to no tenant, and services are called in the name of one",
                    who.owner.user));
  }
  if (has_right(state, who, wanted, tenancy::TenantRight::submit)) return wanted;
  return fail(ErrorCode::permission_denied,
              fmt::format("{} may not submit to tenant {}", who.owner.user, wanted));
}

bool may_call(const State& state, const std::string& tenant, const std::string& name) {
  const auto service = state.services.all.find(name);
  const tenancy::Service* doc = service_document(state, name);
  if (service == state.services.all.end() || doc == nullptr) return false;
  const auto& callers = doc->route.callers;
  return service->second.tenant == tenant || doc->route.access != tenancy::ServiceAccess::tenant ||
         std::find(callers.begin(), callers.end(), tenant) != callers.end();
}

}  // namespace

Result<ServiceTokenWish> service_token_for(const State& state, const Identity& who,
                                           const proto::MakeToken& asked, Instant now) {
  if (!asked.user.empty() && asked.user != who.owner.user)
    return fail(ErrorCode::permission_denied, "an identity token is for oneself");
  ASSIGN(tenant, calling_tenant(state, who, asked.tenant));
  if (asked.audience != proto::kAllServices && !may_call(state, *tenant, asked.audience))
    return fail(
        ErrorCode::not_found,
        fmt::format("there is no service {} that tenant {} may call; {} is for all services",
                    asked.audience, *tenant, proto::kAllServices));
  ServiceTokenWish out{who.owner.user, std::move(*tenant), asked.audience, asked.lifetime};
  if (out.lifetime == Duration{}) out.lifetime = kUsualServiceToken;
  if (out.lifetime < seconds(1))
    return fail(ErrorCode::invalid_argument, "a token is valid for one second at least");
  if (who.token_ends) out.lifetime = std::min(out.lifetime, *who.token_ends - now);
  return out;
}

}  // namespace gantry::core
