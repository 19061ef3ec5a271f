#include "cli/slurm/step/srun_inside.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/slurm/frame.h"
#include "cli/step/step_run.h"
#include "common/text/hostlist.h"
#include "common/text/split.h"

namespace gantry::cli::slurm {
namespace {

// Options of jobs that have a meaning for a step too.
constexpr std::string_view kStepWords[] = {"acctg-freq",
                                           "chdir",
                                           "clusters",
                                           "cpus-per-gpu",
                                           "cpus-per-task",
                                           "distribution",
                                           "exclude",
                                           "exclusive",
                                           "export",
                                           "extra-node-info",
                                           "gpu-bind",
                                           "gpu-freq",
                                           "gpus",
                                           "gpus-per-node",
                                           "gpus-per-task",
                                           "gres",
                                           "hint",
                                           "immediate",
                                           "job-name",
                                           "mem",
                                           "mem-bind",
                                           "mem-per-cpu",
                                           "mem-per-gpu",
                                           "no-kill",
                                           "nodefile",
                                           "nodelist",
                                           "nodes",
                                           "ntasks",
                                           "ntasks-per-core",
                                           "ntasks-per-gpu",
                                           "ntasks-per-node",
                                           "ntasks-per-socket",
                                           "overcommit",
                                           "oversubscribe",
                                           "profile",
                                           "propagate",
                                           "threads-per-core",
                                           "time"};

// Options that a step accepts without effect, because the job's allocation exists already.
constexpr std::string_view kOnlyForJobs[] = {"account",     "comment", "constraint", "mail-type",
                                             "mail-user",   "nice",    "partition",  "qos",
                                             "reservation", "signal",  "wckey"};

template <class Names>
bool names(const Names& all, std::string_view name) {
  return std::find(std::begin(all), std::end(all), name) != std::end(all);
}

bool is_all_memory(const Given& given) {
  return given.option->name == "mem" && given.value == "0";
}

}  // namespace

bool is_srun_option(const Option& option) {
  return std::any_of(kSrunOptions.begin(), kSrunOptions.end(),
                     [&](const Option& o) { return o.name == option.name; });
}

bool keep_step_options(const Invocation& call, std::vector<Given>& given, bool& exclusive) {
  for (const Given& one : given) {
    const std::string_view name = one.option->name;
    exclusive = exclusive || name == "exclusive";
    if (name == "exclusive" && !one.value.empty()) {
      complain(call,
               fmt::format("--exclusive={} is for allocations; a step has --exclusive", one.value));
      return false;
    }
    if (names(kStepWords, name) || names(kOnlyForJobs, name) || is_srun_option(*one.option) ||
        !one.option->refused.empty())
      continue;
    complain(call, fmt::format("{} asks for an allocation; a step inside a job has the job's",
                               shown_name(*one.option)));
    return false;
  }
  std::erase_if(given, [](const Given& one) {
    return one.option->name == "exclusive" || is_all_memory(one) ||
           names(kOnlyForJobs, one.option->name);
  });
  return true;
}

Result<void> check_step_gpus(const GpuWish& wish) {
  constexpr std::uint32_t kOne = 1000;  // thousandths of one GPU
  if (wish.shards > 0 || !wish.others.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("--gres={} asks for an allocation; a step inside a job has the job's",
                            wish.shards > 0 ? "shard" : wish.others.front().name));
  for (const auto& count : {wish.in_all, wish.per_node, wish.per_task})
    if (count.value_or(0) % kOne != 0)
      return fail(ErrorCode::invalid_argument,
                  "a step has whole GPUs of its job, or sees all of them: --gres=gpu:N");
  return {};
}

bool set_relative_nodes(const Invocation& call, SrunRequest& r, const std::string& group) {
  if (!r.relative) return true;
  const char* list = std::getenv(("SLURM_JOB_NODELIST" + group).c_str());
  auto names = expand_hostlist(list == nullptr ? "" : list);
  const std::size_t wanted = r.nodes ? r.nodes->first : 1;
  if (!names || *r.relative + wanted > names->size()) {
    const auto job = number_of_env("SLURM_JOB_ID");
    complain(call, fmt::format("Unable to create step for job {}: Invalid node count for "
                               "--relative",
                               job.value_or(0)));
    return false;
  }
  const auto first = names->begin() + *r.relative;
  const auto last = r.nodes ? first + static_cast<std::ptrdiff_t>(wanted) : names->end();
  r.spec.shape.required_nodes.assign(first, last);
  return true;
}

void fill_with_tasks(SrunRequest& r, const std::string& group) {
  const auto said = [&](const char* name) { return std::getenv((name + group).c_str()); };
  if (!r.spec.given.cpus_per_task || r.tasks || r.spec.shape.tasks_per_node) return;
  const char* counts = said("SLURM_JOB_CPUS_PER_NODE");
  if (said("SLURM_NTASKS") != nullptr || counts == nullptr) return;
  std::uint32_t tasks = 0, nodes = 0;
  for (const std::string& item : split_list(counts)) {  // "4(x2)"
    unsigned cpus = 0, times = 1;
    if (std::sscanf(item.c_str(), "%u(x%u)", &cpus, &times) < 1) return;
    for (unsigned i = 0; i < times && (!r.nodes || nodes < r.nodes->first); ++i, ++nodes)
      tasks += std::max(cpus / r.spec.shape.cpus_per_task, 1u);
  }
  if (tasks > 0) r.tasks = tasks;
}

void widen_launchers(SrunRequest& r) {
  const bool sized = r.spec.given.cpus_per_task || number_of_env("SLURM_CPUS_PER_TASK");
  if (sized || r.exact || r.overlap || !r.spec.shape.tasks_per_node) return;
  r.all_cores = true;
}

}  // namespace gantry::cli::slurm
