// What is not durable of nodes and partitions comes from the configuration, at every start.
#pragma once

#include "config/config.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// Once, after loading, and after all that `config` names was declared. State keeps addresses in
// `config`, which has to outlive it.
void configure(MutableState& state, const Config& config);

}  // namespace gantry::core
