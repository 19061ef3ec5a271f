// Makes the rows that listings and metrics show of a service: its replicas, how well it meets its
// objective, and its cost.
#pragma once

#include <string>

#include "common/proto/services.h"
#include "ctld/core/runtime.h"
#include "ctld/core/services/memory.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

struct ServiceView {
  const State& state;
  const ServiceMemory& rt;
  Instant now{};
};

// `whole`: also its replicas one by one, and its events.
proto::ServiceRow service_row(const ServiceView& view, const std::string& name,
                              const ServiceState& service, const tenancy::Service& doc, bool whole);

}  // namespace gantry::core
