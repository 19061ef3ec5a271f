// A command, or a shell, that runs here while an allocation lasts: galloc and salloc.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/submit/job_request.h"
#include "common/proto/job_query.h"
#include "common/result.h"

namespace gantry::cli {

// Puts into our environment what scripts and grun expect in an allocation (Slurm's names and ours).
void set_allocation_environment(const proto::JobRow& row, const JobRequest& request);

// And what each of its nodes has of it, which launchers of MPI read: SLURM_TASKS_PER_NODE,
// SLURM_JOB_CPUS_PER_NODE.
Result<void> set_allocation_geometry(Session& session, JobId job);

// Of a heterogeneous job: SLURM_HET_SIZE, and of component n SLURM_X_HET_GROUP_n with X of JOB_ID,
// JOB_NODELIST, JOB_NUM_NODES, JOB_PARTITION, TASKS_PER_NODE, JOB_CPUS_PER_NODE.
Result<void> set_component_geometry(Session& session, JobId leader);

// Runs the command, or $SHELL if it is empty; its exit status, or 128 + the signal that ended it.
Result<int> run_in_allocation(const std::string& program, Manner manner,
                              std::vector<std::string> command);

}  // namespace gantry::cli
