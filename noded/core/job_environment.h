// The environment of a batch script: the variables that the user brought, and variables that
// describe the job, under the names of Slurm (which scripts and launchers read) and under our own.
//
// The functions are pure. Every SLURM_X below has a twin GANTRY_X. Variables of the user's
// environment that describe a job (because the job was submitted from inside another job) are
// dropped.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/proto/node_order.h"
#include "common/proto/steps.h"
#include "common/result.h"

namespace gantry::node {

struct EnvironmentFacts {
  std::string cluster;
  std::string node;        // the name of this node
  std::string job_socket;  // the path of the socket as the job sees it; "" = none
};

// Set always: SLURM_JOB_ID JOBID JOB_NAME JOB_NODELIST NODELIST JOB_NUM_NODES NNODES TASKS_PER_NODE
// CPUS_ON_NODE JOB_CPUS_PER_NODE PROCID LOCALID NODEID GTIDS JOB_PARTITION JOB_QOS JOB_USER JOB_UID
// JOB_GID SUBMIT_DIR SUBMIT_HOST CLUSTER_NAME TOPOLOGY_ADDR JOB_START_TIME, SLURMD_NODENAME; HOME
// USER LOGNAME SHELL PATH TMPDIR PWD HOSTNAME ENVIRONMENT. Set when they have a meaning: NTASKS
// NPROCS NTASKS_PER_NODE CPUS_PER_TASK GPUS_PER_TASK TRES_PER_TASK (options given), MEM_PER_NODE or
// MEM_PER_CPU, ARRAY_*, RESTART_COUNT, JOB_ACCOUNT, JOB_END_TIME; in a heterogeneous job's script
// HET_SIZE, and for component n X_HET_GROUP_n with X of JOB_ID JOB_PARTITION JOB_NODELIST NODELIST
// JOB_NUM_NODES NNODES TASKS_PER_NODE JOB_CPUS_PER_NODE NTASKS NPROCS NTASKS_PER_NODE CPUS_PER_TASK
// MEM_PER_CPU MEM_PER_NODE. SLURM_TASK_PID has ten zeros: whoever starts the process overwrites
// them with its id. job_variables() returns only the variables that describe the job, from the
// controller and this node, and nothing from the user's environment. Programs that run as root
// (prolog, epilog) get these and no others.
std::map<std::string, std::string> job_variables(const proto::Launch& launch,
                                                 const EnvironmentFacts& facts);
std::map<std::string, std::string> job_environment(const proto::Launch& launch,
                                                   const EnvironmentFacts& facts);

// The path of the file that the job touches when it has saved its work, as the job and this node
// see it; also the value of GANTRY_CHECKPOINT_FILE; "" = none.
std::string checkpoint_file(const proto::Launch& launch, const std::string& node);

// The environment of a step's tasks on one node: the variables sent by grun, those that all tasks
// of the step share, and those of each task. The function is pure. Every SLURM_X has a twin
// GANTRY_X.
//
// All tasks share STEP_ID STEPID STEP_NODELIST STEP_NUM_NODES STEP_NUM_TASKS STEP_TASKS_PER_NODE
// NTASKS NPROCS NNODES TASKS_PER_NODE NODEID GTIDS CPUS_PER_TASK, and MASTER_ADDR, MASTER_PORT for
// PyTorch's launchers: the first node, and a port computed from the job and the step. If the step
// runs in several components of a heterogeneous job, then NTASKS, NPROCS, NNODES and the numbers
// PROCID, NODEID and GTIDS count over all of these components. A step with a terminal also has
// PTY_WIN_COL and PTY_WIN_ROW. Each task has its own PROCID and LOCALID. Variables that describe
// the job keep the values that they have in the job.
struct StepEnvironment {
  std::map<std::string, std::string> shared;
  std::vector<std::map<std::string, std::string>> tasks;  // by local rank
  std::uint32_t node_index = 0;  // index of this node among the step's nodes
};

// Error not_found: the permission does not name `node`.
Result<StepEnvironment> step_environment(const proto::StepPermission& permission,
                                         const proto::LaunchStep& launch, const std::string& node);

}  // namespace gantry::node
