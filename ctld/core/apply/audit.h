// Checks for tests and the simulator: is everything derived what it must be, and is a recovered
// state the same as the one it stands for? Costs a walk over everything.
#pragma once

#include <string>

#include "ctld/core/state/state.h"

namespace gantry::core {

// Compares what is derived (counters, what nodes have given, arrays' elements, indexes) with a
// count from scratch, and checks that nothing is given twice. "" or the first thing that is wrong.
std::string audit(const State& state);

// All durable records, in order, as JSON lines: equal states have equal texts.
std::string records_text(const State& state);

}  // namespace gantry::core
