// Runs a command, or a shell, on this host while an allocation lasts: for galloc and salloc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/submit/job_request.h"
#include "common/proto/job_query.h"
#include "common/result.h"

namespace gantry::cli {

// Puts into our environment the variables that scripts and grun expect in an allocation (Slurm's
// names and ours).
void set_allocation_environment(const proto::JobRow& row, const JobRequest& request);

// Also sets what the job has on each of its nodes, for launchers of MPI: SLURM_TASKS_PER_NODE and
// SLURM_JOB_CPUS_PER_NODE.
Result<void> set_allocation_geometry(Session& session, JobId job);

// Sets the variables of a heterogeneous job: SLURM_HET_SIZE, and for component n
// SLURM_X_HET_GROUP_n, where X is JOB_ID, JOB_NODELIST, JOB_NUM_NODES, JOB_PARTITION,
// TASKS_PER_NODE or JOB_CPUS_PER_NODE.
Result<void> set_component_geometry(Session& session, JobId leader);

// What happens to the command when its allocation ends before it: it gets a signal, and so do the
// programs that it has started.
struct AtRevocation {
  Session* session = nullptr;
  JobId job{};
  int signal = 0;
};

// Runs the command, or $SHELL if the command is empty. Returns its exit status, or 128 + the signal
// that ended it.
Result<int> run_in_allocation(const std::string& program, Manner manner,
                              std::vector<std::string> command,
                              const std::optional<AtRevocation>& at_end = {});

}  // namespace gantry::cli
