// Makes jobs from the documents of services: compares what each service needs with what it has,
// starts and drains replicas, and advances rollouts.
#pragma once

#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

// When the services have to be looked at next; unset if there are none.
std::optional<Instant> services_due(const Context& ctx);
// Looks at all services.
void run_services(Context& ctx);

// Call it when this identity has changed documents: services get the sets that these describe. Who
// changes what a version runs becomes the owner of its replicas.
void services_changed(Context& ctx, const Identity& who);

// The commands of `gctl service`.
void pause_service(Context& ctx, const std::string& name, bool paused, const std::string& user);
// Returns false if there is no earlier version to go back to.
bool roll_back(Context& ctx, const std::string& name, const std::string& why);
// Gives each version a new set of replicas that runs the same.
void restart_service(Context& ctx, const std::string& name, const Identity& who);

}  // namespace gantry::core
