// Makes random jobs of every kind that the core treats differently.
#pragma once

#include <vector>

#include "common/proto/job_submit.h"
#include "tests/sim/random.h"
#include "tests/sim/settings.h"

namespace gantry::sim {

// `known` are jobs that the new one may depend on. The script names its request, so that a machine
// can tell whether it was given the right one.
proto::SubmitJob draw_submit(Random& random, const Settings& settings,
                             const std::vector<JobId>& known, Instant now, std::string request_id);

std::string script_of(const std::string& request_id);

}  // namespace gantry::sim
