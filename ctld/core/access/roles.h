// Roles of users in tenants, as the grants of the documents give them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/tenancy/tenancy.h"
#include "ctld/core/core.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// The best role that grants give the asker in this tenant; an administrator is admin in all
// tenants.
std::optional<tenancy::Role> role_in(const State& state, const Identity& who,
                                     const std::string& tenant);

// Tenants, by name, that grant the asker the role user or more; being an administrator grants none.
std::vector<std::string> tenants_of(const State& state, const Identity& who);

}  // namespace gantry::core
