// Why a job waits: as a typed verdict for listings, and in words, in order of causes, for `gctl
// why`.
#pragma once

#include <string>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

class Sight;

// Of a queued job. O(1) but for the text of open dependencies.
Verdict verdict_of(const Context& ctx, const Job& job);

// Without names of what is others' when `sight` does not see it; nullptr: for operators.
std::vector<std::string> why(const Context& ctx, const Job& job, const Sight* sight = nullptr);

}  // namespace gantry::core
