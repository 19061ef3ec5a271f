// The environment of a step's tasks on one node: what grun brought, the variables of the step that
// all its tasks share, and those of each task. Pure. Every SLURM_X has a twin GANTRY_X.
//
// Shared: STEP_ID STEPID STEP_NODELIST STEP_NUM_NODES STEP_NUM_TASKS STEP_TASKS_PER_NODE NTASKS
// NPROCS NNODES TASKS_PER_NODE NODEID GTIDS CPUS_PER_TASK, and MASTER_ADDR, MASTER_PORT, where
// PyTorch's launchers meet: the first node, and a port made from the job and the step.
// In several components of a heterogeneous job NTASKS NPROCS NNODES, and the numbers PROCID NODEID
// GTIDS, are those of all of them.
// With a terminal PTY_WIN_COL and PTY_WIN_ROW. Of a task: PROCID LOCALID. What describes the job
// stays as the job has it.
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
  std::uint32_t node_index = 0;                           // of this node in the step
};

// not_found: the permission is not for `node`.
Result<StepEnvironment> step_environment(const proto::StepPermission& permission,
                                         const proto::LaunchStep& launch, const std::string& node);

}  // namespace gantry::node
