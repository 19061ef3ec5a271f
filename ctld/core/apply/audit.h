// Checks for tests and the simulator: is everything that is derived correct, and is a recovered
// state equal to the original? Each costs a walk over everything.
#pragma once

#include <string>

#include "ctld/core/state/state.h"

namespace gantry::core {

// Compares derived values (counters, what is allocated on nodes, elements of arrays, indexes) with
// a count from scratch, and checks that nothing is allocated twice. Returns "" or the first error.
std::string audit(const State& state);

// All durable records in order, as JSON lines. Equal states have equal texts.
std::string records_text(const State& state);

}  // namespace gantry::core
