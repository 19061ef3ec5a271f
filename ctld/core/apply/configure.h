// Sets those parts of nodes that are not durable from the configuration, at every start; for
// partitions see partition/in_force.h.
#pragma once

#include "config/config.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// Call it once, after loading, when everything that `config` names has been declared. State keeps
// addresses in `config`, so `config` must outlive it.
void configure(MutableState& state, const Config& config);

}  // namespace gantry::core
