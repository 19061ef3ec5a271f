// A verdict's reason and numbers in words, for the reasons that come of tenants and plans.
#pragma once

#include <string>

#include "common/job/job_state.h"

namespace gantry {

// One clause without a full stop, "its tenant would use 72 of gpu, and may use 64"; "" for reasons
// of other kinds.
std::string describe_tenancy_reason(const Verdict& verdict);

}  // namespace gantry
