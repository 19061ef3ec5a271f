// These functions decide what a job may use of its nodes' disks and links (--io, --net): its
// tenant's documents may limit it, give a default and demand that each job names it.
#pragma once

#include "common/job/job_spec.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct Partition;

// Gives the job its tenant's defaults where it names no rate, and sets what quota and prices count
// of it (JobShape::io_per_node and net_per_node). Its network must be resolved. Refuses a job that
// names none although its tenant limits that, or names more than the tenant can ever have.
Result<void> count_rates(const Context& ctx, const Partition& queue, JobSpec& spec);

// Whether a job with these rates may be in the queue: invalid_argument if its tenant limits what
// the job does not name. The same rule for a job that moves to another queue.
Result<void> check_rates_named(const State& state, const Partition& queue, const JobSpec& spec);

}  // namespace gantry::core
