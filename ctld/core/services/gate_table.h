// What gantry-gate is told: services, their replicas that may take requests, and the weight of
// each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::tenancy {
struct Service;
}

namespace gantry::core {

// The document of a service; null if there is none.
const tenancy::Service* service_document(const State& state, const std::string& name);

std::vector<std::string> service_names(const State& state);

// The name under which gates know a set of replicas: "v1.7", version and revision.
std::string set_name(const std::string& version, std::uint64_t revision);
// The revision of such a name; 0 if it is none.
std::uint64_t revision_of(std::string_view set_name);

// Makes the table again, and gives it a new revision if it differs from the one before.
void refresh_table(Context& ctx);

}  // namespace gantry::core
