// How strong the wall around a job is: what its tenant's document says, and which nodes have it.
#pragma once

#include "common/job/job_spec.h"
#include "common/result.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// What the nodes of the job have to know so that they keep what it is promised; see NodeAbility.
void resolve_abilities(const State& state, const Partition& partition, JobSpec& spec);

// A job that names no sandbox gets that of its tenant. The nodes that it needs follow from it; the
// standard one stays unset, because every node has it. A kernel of its own has no network, so a job
// that did not ask for one gets none.
void resolve_sandbox(const State& state, const Partition& partition, JobSpec& spec);

// Whether the job may go to this queue with its sandbox. Errors: permission_denied (its tenant's
// document), unsupported (no node of the queue has it, or it cannot give what the job asks for).
Result<void> check_sandbox(const State& state, const Partition& partition, const JobSpec& spec);

}  // namespace gantry::core
