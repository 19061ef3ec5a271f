// Why a job waits: as a typed verdict for listings, and in words, cause by cause, for `gctl why`.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_state.h"
#include "ctld/core/context.h"

namespace gantry::core {

class Sight;

// The verdict of a queued job. O(1) apart from the text of open dependencies.
Verdict verdict_of(const Context& ctx, const Job& job);

// The causes in words. Names that `sight` may not see are left out; nullptr: for operators.
std::vector<std::string> why(const Context& ctx, const Job& job, const Sight* sight = nullptr);

}  // namespace gantry::core
