// Turns a verdict's reason and numbers into words, for the reasons that concern tenants and plans.
#pragma once

#include <string>

#include "common/job/job_state.h"

namespace gantry {

// One clause without a full stop: "its tenant would use 72 of gpu, and may use 64"; "" for other
// reasons.
std::string describe_tenancy_reason(const Verdict& verdict);

}  // namespace gantry
