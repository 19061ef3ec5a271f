// ListServices and ChangeService: users' requests about services.
#include <fmt/core.h>

#include <algorithm>

#include "common/proto/services.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/services/memory.h"
#include "ctld/core/services/reconcile.h"
#include "ctld/core/services/service_rows.h"
#include "ctld/core/services/subject.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

ServiceView view_of(const Context& ctx) {
  return {ctx.state, *ctx.rt.services, ctx.now};
}

void add_gates(const Context& ctx, proto::ServiceList& out) {
  for (const auto& [name, gate] : ctx.rt.services->gates)
    if (gate.at + kGateSilent > ctx.now)
      out.gates.push_back(fmt::format("{} {}", name, gate.address));
}

// The right to change what a service runs includes its commands.
bool may_change(const Context& ctx, const Identity& who, const std::string& tenant) {
  return is_admin(who) || has_right(ctx.state, who, tenant, tenancy::TenantRight::change_jobs);
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ListServices&& message) {
  const Sight sight(ctx.state, from.who);
  proto::ServiceList out;
  for (const auto& [name, service] : ctx.state.services.all) {
    const tenancy::Service* doc = service_document(ctx.state, name);
    if (doc == nullptr || !sight.tenant(service.tenant)) continue;
    if (!message.name.empty() && message.name != name) continue;
    if (!message.tenants.empty() && std::find(message.tenants.begin(), message.tenants.end(),
                                              service.tenant) == message.tenants.end())
      continue;
    out.rows.push_back(service_row(view_of(ctx), name, service, *doc, !message.name.empty()));
  }
  if (!message.name.empty() && out.rows.empty())
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no service {}", message.name)});
  add_gates(ctx, out);
  ctx.reply(from, std::move(out));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ChangeService&& message) {
  const auto it = ctx.state.services.all.find(message.name);
  const Sight sight(ctx.state, from.who);
  if (it == ctx.state.services.all.end() || !sight.tenant(it->second.tenant))
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no service {}", message.name)});
  if (!may_change(ctx, from.who, it->second.tenant))
    return refuse(
        ctx, from,
        {ErrorCode::permission_denied, fmt::format("{} may not change services of tenant {}",
                                                   from.who.owner.user, it->second.tenant)});
  const std::string& user = from.who.owner.user;
  switch (message.action) {
    case proto::ServiceAction::pause: pause_service(ctx, message.name, true, user); break;
    case proto::ServiceAction::resume: pause_service(ctx, message.name, false, user); break;
    case proto::ServiceAction::roll_back:
      if (!roll_back(ctx, message.name, "asked by " + user))
        return refuse(ctx, from,
                      {ErrorCode::wrong_state,
                       fmt::format("no rollout of service {} is under way: there is nothing to go "
                                   "back to",
                                   message.name)});
      break;
    case proto::ServiceAction::restart: restart_service(ctx, message.name, from.who); break;
  }
  proto::ServiceList out;
  const ServiceState& service = ctx.state.services.all.at(message.name);
  if (const tenancy::Service* doc = service_document(ctx.state, message.name))
    out.rows.push_back(service_row(view_of(ctx), message.name, service, *doc, true));
  add_gates(ctx, out);
  ctx.reply(from, std::move(out));
}

const Subject kServiceMessages{.name = "service",
                               .handlers = kHandlers<proto::ListServices, proto::ChangeService>};

}  // namespace gantry::core
