// Why a job waits: as a typed verdict for listings, and in words, in order of causes, for `gctl
// why`.
#pragma once

#include <string>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

// Of a queued job. O(1) but for the text of open dependencies.
Verdict verdict_of(const Context& ctx, const Job& job);

std::vector<std::string> why(const Context& ctx, const Job& job);

}  // namespace gantry::core
