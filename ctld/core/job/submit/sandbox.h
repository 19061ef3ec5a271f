// How strongly a job is isolated: what its tenant's document demands, and which nodes can do it.
#pragma once

#include "common/job/job_spec.h"
#include "common/result.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// The abilities that the job's nodes must have to keep what is promised to the job; see
// NodeAbility.
void resolve_abilities(const State& state, const Partition& partition, JobSpec& spec);

// A job that names no sandbox gets that of its tenant. It limits the nodes that the job can use;
// the standard sandbox stays unset, because every node has it. A sandbox with its own kernel has no
// network, so a job that did not ask for one gets none.
void resolve_sandbox(const State& state, const Partition& partition, JobSpec& spec);

// Whether the job may go to this queue with its sandbox. Errors: permission_denied (its tenant's
// document), unsupported (no node of the queue has it, or it cannot give what the job asks for).
Result<void> check_sandbox(const State& state, const Partition& partition, const JobSpec& spec);

}  // namespace gantry::core
