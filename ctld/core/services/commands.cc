// Pauses, rolls back and restarts services; keeps their sets as the documents say.
#include <fmt/core.h>

#include <algorithm>

#include "ctld/core/context.h"
#include "ctld/core/event/events_service.h"
#include "ctld/core/request.h"
#include "ctld/core/services/gate_table.h"
#include "ctld/core/services/reconcile.h"
#include "ctld/core/services/sets.h"
#include "ctld/core/state/state.h"
#include "ctld/scale/rollout.h"

namespace gantry::core {

void services_changed(Context& ctx, const Identity& who) {
  for (const std::string& name : service_names(ctx.state))
    if (service_document(ctx.state, name) == nullptr) ctx.record(event::ServiceRemoved{name});
  for (const auto& [key, document] : ctx.state.tenancy.documents) {
    const auto* doc = std::get_if<tenancy::Service>(&document);
    if (doc == nullptr) continue;
    const auto now = ctx.state.services.all.find(doc->name);
    auto sets =
        sets_for(*doc, now == ctx.state.services.all.end() ? nullptr : &now->second, who, ctx.now);
    if (sets) ctx.record(*sets);
  }
  run_services(ctx);
}

void pause_service(Context& ctx, const std::string& name, bool paused, const std::string& user) {
  ctx.record(event::ServiceNoted{name, fmt::format("{} by {}", paused ? "paused" : "goes on", user),
                                 paused});
}

bool roll_back(Context& ctx, const std::string& name, const std::string& why) {
  const ServiceState& service = ctx.state.services.all.at(name);
  for (const ReplicaSet& set : service.sets) {
    if (set_before(service, set) == nullptr) continue;
    const std::string version = set.what.name;
    event::ServiceSet sets = without_sets(name, service, version, true);
    sets.text = fmt::format("{} went back to what it was: {}", version, why);
    ctx.record(sets);
    run_services(ctx);
    return true;
  }
  return false;
}

void restart_service(Context& ctx, const std::string& name, const Identity& who) {
  const ServiceState& service = ctx.state.services.all.at(name);
  event::ServiceSet sets;
  sets.name = name;
  sets.tenant = service.tenant;
  sets.last_revision = service.last_revision;
  sets.went_back = service.went_back;
  sets.text = "its replicas are made anew, as " + who.owner.user + " asked";
  const tenancy::Service* doc = service_document(ctx.state, name);
  const std::uint32_t part = doc == nullptr ? 1000 : scale::first_part(doc->rollout);
  for (const ReplicaSet& set : service.sets) {
    if (newest_set(service, set.what.name)->revision != set.revision) continue;
    ReplicaSet& before = sets.sets.emplace_back(set);
    ReplicaSet fresh = set;
    fresh.part = part;
    before.part = 1000 - part % 1000;
    fresh.revision = ++sets.last_revision;
    fresh.since = ctx.now;
    sets.sets.push_back(std::move(fresh));
  }
  std::sort(sets.sets.begin(), sets.sets.end(),
            [](const ReplicaSet& a, const ReplicaSet& b) { return a.revision < b.revision; });
  ctx.record(sets);
  run_services(ctx);
}

}  // namespace gantry::core
