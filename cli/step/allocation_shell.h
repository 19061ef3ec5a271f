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

// Sets in the present environment the variables that scripts and grun expect in an allocation (with
// Slurm's names and Gantry's).
void set_allocation_environment(const proto::JobRow& row, const JobRequest& request);

// Also sets what the job has on each of its nodes, for launchers of MPI: SLURM_TASKS_PER_NODE and
// SLURM_JOB_CPUS_PER_NODE.
Result<void> set_allocation_geometry(Session& session, JobId job);

// Sets the variables of a heterogeneous job: SLURM_HET_SIZE, and for component n
// SLURM_X_HET_GROUP_n, where X is JOB_ID, JOB_NODELIST, JOB_NUM_NODES, JOB_PARTITION,
// TASKS_PER_NODE or JOB_CPUS_PER_NODE.
Result<void> set_component_geometry(Session& session, JobId leader);

// The allocation in which the command runs. Messages of `scontrol notify`, and an end before the
// command's, are shown. If there is a signal, the command and the programs that it has started get
// it at that end.
struct AtRevocation {
  Session* session = nullptr;
  JobId job{};
  std::optional<int> signal{};
};

// Runs the command, or $SHELL if the command is empty. Returns its exit status, or 128 + the signal
// that ended it.
Result<int> run_in_allocation(const std::string& program, Manner manner,
                              std::vector<std::string> command,
                              const std::optional<AtRevocation>& at_end = {});

}  // namespace gantry::cli
