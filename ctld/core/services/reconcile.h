// Makes jobs of the documents of services: looks what each service needs and has, starts replicas
// and drains them, and moves rollouts on.
#pragma once

#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

// When the services have to be looked at next; unset: there are none.
std::optional<Instant> services_due(const Context& ctx);
// Looks at all services.
void run_services(Context& ctx);

// Documents have changed, and this identity changed them: services get the sets that they say. Who
// changes what a version runs is from then on the owner of its replicas.
void services_changed(Context& ctx, const Identity& who);

// People's commands.
void pause_service(Context& ctx, const std::string& name, bool paused, const std::string& user);
// False if there is nothing to go back to.
bool roll_back(Context& ctx, const std::string& name, const std::string& why);
// Gives each version a new set that runs the same.
void restart_service(Context& ctx, const std::string& name, const Identity& who);

}  // namespace gantry::core
