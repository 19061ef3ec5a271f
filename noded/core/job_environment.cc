#include "noded/core/job_environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "common/job/output_pattern.h"
#include "common/proto/meeting_point.h"
#include "common/text/hostlist.h"

namespace gantry::node {

namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// A variable describes a job or a step if its name is SLURM_ or GANTRY_ followed by one of these.
constexpr std::array<std::string_view, 27> kJobWords{
    "JOB_",          "JOBID",        "ARRAY_",       "STEP",        "NTASKS",   "NPROCS",
    "NNODES",        "NODELIST",     "NODEID",       "NODENAME",    "PROCID",   "LOCALID",
    "GTIDS",         "TASK",         "CPUS_",        "MEM_PER_",    "RESTART_", "SUBMIT_",
    "TOPOLOGY",      "CLUSTER_NAME", "DISTRIBUTION", "CHECKPOINT_", "SHARDS_",  "GPUS",
    "TRES_PER_TASK", "HET_",         "OVERCOMMIT"};

bool describes_a_job(std::string_view name) {
  if (name.starts_with("SLURMD_")) return true;
  std::string_view rest;
  if (name.starts_with("SLURM_"))
    rest = name.substr(6);
  else if (name.starts_with("GANTRY_"))
    rest = name.substr(7);
  else
    return false;
  return std::ranges::any_of(kJobWords,
                             [&](std::string_view word) { return rest.starts_with(word); });
}

class Variables {
 public:
  explicit Variables(std::map<std::string, std::string>& out) : out_(out) {}
  void set(const std::string& name, std::string value) {
    out_["GANTRY_" + name] = value;
    out_["SLURM_" + name] = std::move(value);
  }
  void set(const std::string& name, std::uint64_t value) { set(name, std::to_string(value)); }
  void plain(const std::string& name, std::string value) { out_[name] = std::move(value); }
  void fallback(const std::string& name, std::string value) {
    if (auto& v = out_[name]; v.empty()) v = std::move(value);
  }

 private:
  std::map<std::string, std::string>& out_;
};

void set_distribution(Variables& v, const Distribution& distribution) {
  if (distribution.plane > 0) v.set("DIST_PLANESIZE", distribution.plane);
  v.set("DISTRIBUTION", distribution_words(distribution));
}

void add_geometry(Variables& v, const proto::Launch& launch, const NodePlacement& here) {
  std::vector<std::string> names;
  std::vector<std::uint32_t> tasks, cpus;
  std::uint64_t all_tasks = 0;
  for (const auto& p : launch.placement) {
    names.push_back(p.node);
    tasks.push_back(p.tasks);
    cpus.push_back(static_cast<std::uint32_t>(p.cpus.size()));
    all_tasks += p.tasks;
  }
  const std::string nodelist = compress_hostlist(names);
  v.set("JOB_NODELIST", nodelist);
  v.set("NODELIST", nodelist);
  v.set("JOB_NUM_NODES", names.size());
  v.set("NNODES", names.size());
  v.set("TASKS_PER_NODE", compress_counts(tasks));
  v.set("JOB_CPUS_PER_NODE", compress_counts(cpus));
  v.set("CPUS_ON_NODE", here.cpus.size());
  v.set("PROCID", 0);
  v.set("LOCALID", 0);
  v.set("GTIDS", 0);
  v.set("NODEID", launch.node_index);
  // Ten zeros, which whoever starts the process overwrites with its process id.
  v.set("TASK_PID", std::string("0000000000"));

  const JobShape& shape = launch.spec.shape;
  if (shape.gpus_per_node > 0) {
    if (shape.gpus_in_all == 0) v.set("GPUS_PER_NODE", shape.gpus_per_node);
    v.set("GPUS", std::uint64_t{shape.gpus_of(static_cast<std::uint32_t>(names.size()))});
  }
  const GivenOptions& given = launch.spec.given;
  if (given.gpus_per_task && here.tasks > 0) {
    const std::uint32_t each =
        shape.gpus_per_task > 0 ? shape.gpus_per_task : shape.gpus_per_node / here.tasks;
    v.set("GPUS_PER_TASK", each);
    v.set("TRES_PER_TASK", fmt::format("gres/gpu={}", each));
  }
  if (shape.overcommit) v.set("OVERCOMMIT", std::uint64_t{1});
  if (shape.gpu_shards > 0) v.set("SHARDS_ON_NODE", shape.gpu_shards);
  if (!shape.licenses.empty()) v.set("JOB_LICENSES", to_string(shape.licenses));
  if (launch.spec.distribution) set_distribution(v, *launch.spec.distribution);
  if (given.tasks || given.tasks_per_node) {
    v.set("NTASKS", all_tasks);
    v.set("NPROCS", all_tasks);
  }
  if (given.tasks_per_node && shape.tasks_per_node) v.set("NTASKS_PER_NODE", *shape.tasks_per_node);
  if (given.cpus_per_gpu) v.set("CPUS_PER_GPU", *given.cpus_per_gpu);
  if (given.cpus_per_task) v.set("CPUS_PER_TASK", shape.cpus_per_task);
  if (shape.memory_per_cpu)
    v.set("MEM_PER_CPU", static_cast<std::uint64_t>(*shape.memory_per_cpu >> 20));
  else if (here.memory > 0)
    v.set("MEM_PER_NODE", static_cast<std::uint64_t>(here.memory >> 20));
}

std::string shown_qos(const std::string& priority_class) {
  return priority_class.empty() ? "normal" : priority_class;
}

void add_job(Variables& v, const proto::Launch& launch, const EnvironmentFacts& facts) {
  const JobSpec& spec = launch.spec;
  v.set("JOB_ID", launch.key.job.value());
  v.set("JOBID", launch.key.job.value());
  v.set("JOB_NAME", spec.name);
  v.set("JOB_PARTITION", launch.partition);
  if (!spec.account.empty()) v.set("JOB_ACCOUNT", spec.account);
  v.set("JOB_QOS", shown_qos(spec.priority_class));
  v.set("JOB_USER", launch.owner.user);
  v.set("JOB_UID", launch.owner.uid.value());
  v.set("JOB_GID", launch.owner.gid.value());
  v.set("SUBMIT_DIR", spec.submit_dir.empty() ? spec.work_dir : spec.submit_dir);
  v.set("SUBMIT_HOST", spec.submit_host);
  v.set("CLUSTER_NAME", facts.cluster);
  v.set("TOPOLOGY_ADDR", facts.node);
  v.set("TOPOLOGY_ADDR_PATTERN", std::string("node"));
  v.plain("SLURMD_NODENAME", facts.node);
  v.plain("GANTRY_NODENAME", facts.node);
  v.set("JOB_START_TIME", static_cast<std::uint64_t>(launch.placed_at.us / 1'000'000));
  if (launch.time_limit)
    v.set("JOB_END_TIME",
          static_cast<std::uint64_t>((launch.placed_at + *launch.time_limit).us / 1'000'000));
  if (!spec.checkpoint_file.empty())
    v.plain("GANTRY_CHECKPOINT_FILE", checkpoint_file(launch, facts.node));
  if (launch.restarts > 0) v.set("RESTART_COUNT", launch.restarts);
  if (launch.array_task) {
    v.set("ARRAY_JOB_ID", launch.array_job.value());
    v.set("ARRAY_TASK_ID", *launch.array_task);
    v.set("ARRAY_TASK_COUNT", launch.array_count);
    v.set("ARRAY_TASK_MIN", launch.array_min);
    v.set("ARRAY_TASK_MAX", launch.array_max);
    v.set("ARRAY_TASK_STEP", std::max(launch.array_step, 1u));
  }
}

// Sets HET_SIZE, and the variables that describe the nodes of each component, with _HET_GROUP_n
// behind their names.
void add_components(std::map<std::string, std::string>& out, const proto::Launch& launch) {
  if (launch.het.empty()) return;
  Variables(out).set("HET_SIZE", launch.het.size());
  constexpr std::array<std::string_view, 12> kWords{
      "JOB_NODELIST",   "NODELIST",          "JOB_NUM_NODES", "NNODES",
      "TASKS_PER_NODE", "JOB_CPUS_PER_NODE", "NTASKS",        "NPROCS",
      "MEM_PER_CPU",    "MEM_PER_NODE",      "CPUS_PER_TASK", "NTASKS_PER_NODE"};
  for (std::size_t i = 0; i < launch.het.size(); ++i) {
    const proto::HetGroup& group = launch.het[i];
    if (group.placement.empty()) continue;
    proto::Launch alone;
    alone.spec.shape = group.shape;
    alone.spec.given = group.given;
    alone.placement = group.placement;
    std::map<std::string, std::string> own;
    Variables of_group(own);
    add_geometry(of_group, alone, group.placement.front());
    of_group.set("JOB_ID", group.job.value());
    of_group.set("JOB_PARTITION", group.partition);
    of_group.set("JOB_NAME", group.name);
    of_group.set("JOB_QOS", shown_qos(group.priority_class));
    const auto pass_on = [&](std::string_view word) {
      for (const std::string_view prefix : {"SLURM_", "GANTRY_"})
        if (const auto at = own.find(fmt::format("{}{}", prefix, word)); at != own.end())
          out[fmt::format("{}_HET_GROUP_{}", at->first, i)] = at->second;
    };
    for (const std::string_view word : kWords) pass_on(word);
    for (const std::string_view word : {"JOB_ID", "JOB_PARTITION", "JOB_NAME", "JOB_QOS"})
      pass_on(word);
  }
}

// The proxy of the job's network profile replaces one from the environment of the submit. The job's
// own nodes are reached without it.
void add_proxy(Variables& v, const proto::JobNetwork& network) {
  if (network.reach.proxy.empty()) return;
  std::string direct = "localhost,127.0.0.1,::1," + network.own.node;
  for (const proto::NetworkPart& peer : network.peers)
    if (peer.job != JobId{}) direct += "," + peer.node;
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"})
    v.plain(name, network.reach.proxy);
  for (const char* name : {"no_proxy", "NO_PROXY"}) v.plain(name, direct);
}

using Map = std::map<std::string, std::string>;

void set(Map& out, const std::string& name, const std::string& value) {
  out["SLURM_" + name] = value;
  out["GANTRY_" + name] = value;
}
void set(Map& out, const std::string& name, std::uint64_t value) {
  set(out, name, std::to_string(value));
}

}  // namespace

// A pattern that cannot be expanded stays as it is.
std::string checkpoint_file(const proto::Launch& launch, const std::string& node) {
  const JobSpec& spec = launch.spec;
  if (spec.checkpoint_file.empty()) return {};
  PatternValues values;
  values.job = launch.key.job;
  values.array_job = launch.array_job;
  values.array_task = launch.array_task;
  values.name = spec.name;
  values.user = launch.owner.user;
  values.node = node;
  values.node_index = launch.node_index;
  const std::string path =
      expand_pattern(spec.checkpoint_file, values).value_or(spec.checkpoint_file);
  return path.starts_with('/') ? path : spec.work_dir + "/" + path;
}

std::map<std::string, std::string> job_variables(const proto::Launch& launch,
                                                 const EnvironmentFacts& facts) {
  std::map<std::string, std::string> out;
  Variables v(out);
  const NodePlacement none;
  const bool placed = launch.node_index < launch.placement.size();
  add_geometry(v, launch, placed ? launch.placement[launch.node_index] : none);
  add_job(v, launch, facts);
  add_components(out, launch);
  return out;
}

std::map<std::string, std::string> job_environment(const proto::Launch& launch,
                                                   const EnvironmentFacts& facts) {
  std::map<std::string, std::string> out = job_variables(launch, facts);
  for (const auto& [name, value] : launch.environment)
    if (!describes_a_job(name)) out.emplace(name, value);

  Variables v(out);
  const Owner& owner = launch.owner;
  v.fallback("HOME", owner.home);
  v.fallback("USER", owner.user);
  v.fallback("LOGNAME", owner.user);
  v.fallback("SHELL", owner.shell.empty() ? "/bin/sh" : owner.shell);
  v.fallback("PATH", std::string(kDefaultPath));
  // The job has a private /tmp, in which the submitter's TMPDIR does not exist.
  v.plain("TMPDIR", "/tmp");
  v.plain("PWD", launch.spec.work_dir);
  v.plain("HOSTNAME", facts.node);
  v.plain("ENVIRONMENT", "BATCH");
  if (!facts.job_socket.empty()) v.plain("GANTRY_JOB_SOCKET", facts.job_socket);
  if (launch.network) add_proxy(v, *launch.network);
  return out;
}

Result<StepEnvironment> step_environment(const proto::StepPermission& permission,
                                         const proto::LaunchStep& launch, const std::string& node) {
  const auto here = std::ranges::find_if(permission.nodes,
                                         [&](const proto::StepNode& n) { return n.node == node; });
  if (here == permission.nodes.end())
    return fail(ErrorCode::not_found,
                fmt::format("step {}.{} has no part on node {}", permission.key.job.value(),
                            permission.step.value(), node));
  StepEnvironment out;
  out.node_index = static_cast<std::uint32_t>(here - permission.nodes.begin());
  // A step that runs in several components of a heterogeneous job appears to its tasks as one step.
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
  // Values that the user has set are not replaced.
  if (launch.meeting_point) shared.merge(meeting_point(permission));
  return out;
}

}  // namespace gantry::node
