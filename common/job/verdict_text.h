// Turns a verdict's reason and numbers into words. The controller and the commands use these, so a
// reason reads the same everywhere; the controller adds what only it knows (explain.h).
#pragma once

#include <string>
#include <string_view>

#include "common/job/job_state.h"
#include "common/time/time.h"

namespace gantry {

// One clause without a full stop, which begins in lower case: "it needs 2 nodes; none is free".
std::string describe_verdict(const Verdict& verdict, Instant now);

// "1 job", "3 jobs"
std::string counted(std::int64_t count, std::string_view thing);

// The clause as a sentence: "It needs 2 nodes; none is free."
std::string as_sentence(std::string clause);

}  // namespace gantry
