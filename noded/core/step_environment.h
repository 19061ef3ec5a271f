// The environment of a step's tasks on one node: the variables that grun brought, those of the step
// that all its tasks share, and those of each task. The function is pure. Every SLURM_X has a twin
// GANTRY_X.
//
// All tasks share STEP_ID STEPID STEP_NODELIST STEP_NUM_NODES STEP_NUM_TASKS STEP_TASKS_PER_NODE
// NTASKS NPROCS NNODES TASKS_PER_NODE NODEID GTIDS CPUS_PER_TASK, and MASTER_ADDR, MASTER_PORT,
// where PyTorch's launchers meet: the first node, and a port made from the job and the step. If the
// step runs in several components of a heterogeneous job, then NTASKS, NPROCS, NNODES and the
// numbers PROCID, NODEID and GTIDS count over all of these components. A step with a terminal also
// has PTY_WIN_COL and PTY_WIN_ROW. Each task has its own PROCID and LOCALID. Variables that
// describe the job keep the values that they have in the job.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/proto/steps.h"
#include "common/result.h"

namespace gantry::node {

struct StepEnvironment {
  std::map<std::string, std::string> shared;
  std::vector<std::map<std::string, std::string>> tasks;  // by local rank
  std::uint32_t node_index = 0;  // index of this node among the step's nodes
};

// not_found: the permission does not name `node`.
Result<StepEnvironment> step_environment(const proto::StepPermission& permission,
                                         const proto::LaunchStep& launch, const std::string& node);

}  // namespace gantry::node
