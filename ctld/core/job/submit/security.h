// What a tenant's document demands of isolation: how much of the host a job may ask for, and where
// its image may come from.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct Partition;

// Gives the job the sandbox of its tenant if it names none. Refuses a job that breaks the profile
// which its tenant enforces, or whose image may not be used. A break of the profile under `warn`
// becomes a warning, and under `audit` a note in the controller's log.
Result<void> apply_security(Context& ctx, const Identity& who, const Partition& partition,
                            JobSpec& spec, std::vector<std::string>& warnings);
// Whether the job may go to this queue; `uid` is its user's.
Result<void> check_security(const State& state, Uid uid, const Partition& partition,
                            const JobSpec& spec);

}  // namespace gantry::core
