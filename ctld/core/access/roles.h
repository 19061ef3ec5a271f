// Roles of people in tenants, as the grants of the documents give them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/tenancy/tenancy.h"
#include "ctld/core/core.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// The best role that grants give the asker in this tenant; admins of the cluster are admin in all.
std::optional<tenancy::Role> role_in(const State& state, const Identity& who,
                                     const std::string& tenant);

// Tenants that give the asker the role user or more, by name; being an administrator gives none.
std::vector<std::string> tenants_of(const State& state, const Identity& who);

}  // namespace gantry::core
