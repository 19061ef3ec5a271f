#include "noded/core/step_environment.h"

#include <algorithm>
#include <numeric>

#include "common/proto/meeting_point.h"
#include "common/text/hostlist.h"

namespace gantry::node {
namespace {

using Map = std::map<std::string, std::string>;

void set(Map& out, const std::string& name, const std::string& value) {
  out["SLURM_" + name] = value;
  out["GANTRY_" + name] = value;
}
void set(Map& out, const std::string& name, std::uint64_t value) {
  set(out, name, std::to_string(value));
}

}  // namespace

Result<StepEnvironment> step_environment(const proto::StepPermission& permission,
                                         const proto::LaunchStep& launch, const std::string& node) {
  const auto here = std::find_if(permission.nodes.begin(), permission.nodes.end(),
                                 [&](const proto::StepNode& n) { return n.node == node; });
  if (here == permission.nodes.end())
    return fail(ErrorCode::not_found,
                fmt::format("step {}.{} has no part on node {}", permission.key.job.value(),
                            permission.step.value(), node));
  StepEnvironment out;
  out.node_index = static_cast<std::uint32_t>(here - permission.nodes.begin());
  // A step that runs in several components of a heterogeneous job looks like one step to its tasks.
  const proto::HetStep alone;
  const proto::HetStep& all = launch.het ? *launch.het : alone;
  std::vector<std::string> names = all.nodes;
  std::vector<std::uint32_t> counts = all.tasks;
  for (const proto::StepNode& n : permission.nodes) {
    if (launch.het) break;
    names.push_back(n.node);
    counts.push_back(n.tasks);
  }
  const std::uint64_t tasks = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  Map& shared = out.shared;
  shared = launch.environment;
  const std::string nodelist = compress_hostlist(names);
  set(shared, "STEP_ID", permission.step.value());
  set(shared, "STEPID", permission.step.value());
  set(shared, "STEP_NODELIST", nodelist);
  set(shared, "STEP_NUM_NODES", names.size());
  set(shared, "STEP_NUM_TASKS", tasks);
  set(shared, "STEP_TASKS_PER_NODE", compress_counts(counts));
  const auto set_size = [&](const std::string& name, std::uint64_t value) {
    if (!launch.keep_sizes || !shared.contains("SLURM_" + name)) set(shared, name, value);
  };
  set_size("NTASKS", tasks);
  set_size("NPROCS", tasks);
  set_size("NNODES", names.size());
  set(shared, "TASKS_PER_NODE", compress_counts(counts));
  set(shared, "NODEID", all.first_node + out.node_index);
  if (shared.contains("SLURM_CPUS_PER_TASK") || permission.cpus_per_task > 1)
    set(shared, "CPUS_PER_TASK", permission.cpus_per_task);
  if (!here->cpus.empty()) set(shared, "CPUS_ON_NODE", here->cpus.size());
  set(shared, "TOPOLOGY_ADDR", node);
  set(shared, "TOPOLOGY_ADDR_PATTERN", std::string("node"));
  std::string ranks;
  for (std::uint32_t i = 0; i < here->tasks; ++i) {
    const std::uint32_t rank = all.first_rank + here->rank(i);
    if (i > 0) ranks += ',';
    ranks += std::to_string(rank);
    Map& task = out.tasks.emplace_back();
    set(task, "PROCID", rank);
    set(task, "LOCALID", i);
  }
  set(shared, "GTIDS", ranks);
  if (launch.terminal) {
    set(shared, "PTY_WIN_COL", launch.terminal->columns);
    set(shared, "PTY_WIN_ROW", launch.terminal->rows);
  }
  constexpr std::string_view kTcp = "tcp://";
  if (launch.io_address.starts_with(kTcp))
    set(shared, "LAUNCH_NODE_IPADDR", host_of(launch.io_address.substr(kTcp.size())));
  shared["SLURMD_NODENAME"] = node;
  shared["GANTRY_NODENAME"] = node;
  shared["HOSTNAME"] = node;
  // What the user has set is not replaced.
  if (launch.meeting_point) shared.merge(meeting_point(permission));
  return out;
}

}  // namespace gantry::node
