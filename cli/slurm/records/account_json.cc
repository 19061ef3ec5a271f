#include "cli/slurm/records/account_json.h"

#include <fmt/core.h>
#include <grp.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "cli/columns/account_columns.h"
#include "cli/columns/job_words.h"
#include "cli/option.h"
#include "cli/slurm/records/account_fields.h"
#include "cli/slurm/records/history.h"
#include "cli/slurm/records/job_fields.h"
#include "cli/slurm/records/job_json.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

Tree sacct_time_tree(const AccountRow& v) {
  const proto::JobRow& row = v.job->row;
  const auto begin = v.step != nullptr ? std::optional(v.step->started) : row.started;
  const auto end = v.step != nullptr ? v.step->ended : row.ended;
  const Usage& usage = v.step != nullptr ? v.step->usage : v.job->usage;
  const auto cpu = [](std::int64_t us) {
    Tree tree = Tree::object();
    return tree.add("seconds", us / 1'000'000).add("microseconds", us % 1'000'000);
  };
  Tree tree = Tree::object();
  tree.add("elapsed", elapsed_of(v).seconds());
  tree.add("eligible", row.eligible.us / 1'000'000).add("submission", row.submitted.us / 1'000'000);
  tree.add("start", begin ? begin->us / 1'000'000 : 0).add("end", end ? end->us / 1'000'000 : 0);
  row.time_limit ? tree.add_set("limit", row.time_limit->seconds() / 60)
                 : tree.add_infinite("limit");
  tree.add("system", cpu(usage.cpu_system_us)).add("user", cpu(usage.cpu_user_us));
  return tree.add("total", cpu(usage.cpu_system_us + usage.cpu_user_us));
}

Tree sacct_step_tree(const AccountRow& v) {
  Tree id = Tree::object();
  id.add("id", std::to_string(v.job->row.slurm_id().value()) + "." + v.step->step);
  id.add("name", v.step->name);
  Tree tree = Tree::object();
  tree.add("step", std::move(id)).add("state", Tree::words({state_with_canceller(v)}));
  tree.add("exit_code", exit_code_tree(v.step->exit)).add("time", sacct_time_tree(v));
  Tree nodes = Tree::object();
  tree.add("nodes", nodes.add("range", v.step->node_list));
  Tree tasks = Tree::object();
  return tree.add("tasks", tasks.add("count", std::int64_t{v.step->tasks}));
}

// Slurm's numbers for resources, which are the same on every cluster. Devices have numbers from
// 1001 on.
struct Counted {
  std::string_view name;
  std::int64_t id;
};
constexpr Counted kCounted[] = {{"cpu", 1}, {"mem", 2}, {"node", 4}, {"billing", 5}};

// The list for a text like "billing=1,cpu=1,gres/gpu=2,mem=40M,node=1", which sacct shows.
Tree tres_list(const std::string& text) {
  Tree list = Tree::list();
  for (const std::string& item : split_list(text)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = item.substr(0, equals);
    const std::size_t slash = std::min(key.find('/'), key.size());
    const auto known = std::find_if(std::begin(kCounted), std::end(kCounted),
                                    [&](const Counted& c) { return c.name == key; });
    const auto bytes = parse_memory(item.substr(equals + 1));
    Tree one = Tree::object();
    one.add("type", key.substr(0, slash));
    one.add("name", slash < key.size() ? key.substr(slash + 1) : "");
    one.add("id", known == std::end(kCounted) ? std::int64_t{1001} : known->id);
    one.add("count", key == "mem" && bytes ? *bytes >> 20
                                           : std::int64_t{std::atoll(item.c_str() + equals + 1)});
    list.add("", std::move(one));
  }
  return list;
}

Tree tres_tree(const AccountRow& v) {
  std::string allocated, requested;
  put_alloc_tres(allocated, v);
  put_req_tres(requested, v);
  Tree tree = Tree::object();
  return tree.add("allocated", tres_list(allocated)).add("requested", tres_list(requested));
}

}  // namespace

Tree sacct_job_tree(const AccountRow& v) {
  const proto::JobRow& row = v.job->row;
  const std::string state = state_with_canceller(v);
  std::string group;
  put_group(group, v);
  Tree tree = Tree::object();
  tree.add("account", row.account).add("allocation_nodes", std::int64_t{row.nodes});
  Tree array = Tree::object();
  array.add("job_id", static_cast<std::int64_t>(row.array_job.value()));
  row.array_task ? array.add_set("task_id", *row.array_task) : array.add_unset("task_id");
  tree.add("array", array.add("task", row.array_tasks)).add("cluster", v.cluster);
  Tree comment = Tree::object();
  comment.add("administrator", v.job->admin_comment).add("job", v.job->comment);
  comment.add("system", v.job->system_comment);
  tree.add("comment", std::move(comment)).add("exit_code", exit_code_tree(row.exit));
  Tree het = Tree::object();
  het.add("job_id", row.het ? static_cast<std::int64_t>(row.het->leader.value()) : 0);
  row.het ? het.add_set("job_offset", row.het->offset) : het.add_unset("job_offset");
  tree.add("het", std::move(het));
  tree.add("group", std::move(group))
      .add("job_id", static_cast<std::int64_t>(row.slurm_id().value()));
  tree.add("name", row.name).add("nodes", row.node_list.empty() ? "None assigned" : row.node_list);
  tree.add("partition", row.partition)
      .add_set("priority", row.priority)
      .add("qos", std::string(priority_class_of(*v.job)));
  Tree required = Tree::object();
  required.add("CPUs", std::int64_t{row.cpus});
  required.add_set("memory_per_node", row.memory_per_node >> 20);
  tree.add("required", std::move(required)).add("restart_cnt", std::int64_t{row.restarts});
  Tree current = Tree::object();
  current.add("current", Tree::words({state.substr(0, state.find(' '))}));
  tree.add("state", current.add("reason", state.find(' ') == std::string::npos ? "None" : state));
  tree.add("submit_line", v.job->submit_line).add("time", sacct_time_tree(v));
  tree.add("tres", tres_tree(v)).add("user", row.user);
  tree.add("working_directory", v.job->work_dir);
  Tree steps = Tree::list();
  for (const proto::StepRow& step : v.job->steps)
    steps.add("", sacct_step_tree({v.job, &step, v.now, v.units, v.cluster}));
  return tree.add("steps", std::move(steps));
}

// Values of sacct's lines that several fields or commands need.
Duration elapsed_of(const AccountRow& v) {
  const auto begin = v.step != nullptr ? std::optional(v.step->started) : v.job->row.started;
  const auto end = v.step != nullptr ? v.step->ended : v.job->row.ended;
  if (!begin) return {};
  // The batch step runs as long as the job, so the job's suspended time is subtracted. For other
  // steps the suspended time is not known.
  const bool whole = v.step == nullptr || v.step->step == "batch" || v.step->step == "extern";
  const Duration stopped = whole ? v.job->row.suspended : Duration{};
  return std::max(end.value_or(v.now) - *begin - stopped, Duration{});
}

std::uint32_t cpus_of(const AccountRow& v) {
  return cores_held(*v.job, v.step);
}

std::string_view step_state(const proto::HistoryRow& job, const proto::StepRow& step) {
  if (step.running) return words_of(Phase::running, std::nullopt).state;
  const auto outcome = job.row.outcome;
  const bool ended = outcome == Outcome::cancelled || outcome == Outcome::timeout;
  const bool by_us = step.exit.signal == SIGTERM || step.exit.signal == SIGKILL;
  return words_of(Phase::ended, ended && by_us ? Outcome::cancelled : step.outcome).state;
}

std::string state_with_canceller(const AccountRow& v) {
  if (v.step != nullptr) return std::string(step_state(*v.job, *v.step));
  // Slurm's accounting has neither CONFIGURING nor COMPLETING: a job that has nodes is RUNNING
  // until it ends.
  const Phase phase = v.job->row.phase;
  if (v.job->requeued && v.job->row.outcome == Outcome::cancelled) return "REQUEUED";
  const bool between = phase == Phase::starting || phase == Phase::finishing;
  const std::string_view text =
      between ? words_of(Phase::running, std::nullopt).state : words_of(v.job->row).state;
  return std::string(text) + canceller_of(*v.job);
}

std::uint32_t nodes_of(const AccountRow& v) {
  if (v.step == nullptr) return v.job->row.nodes;
  if (v.step->step == "batch") return 1;
  const auto names = expand_hostlist(v.step->node_list);
  return names && !names->empty() ? static_cast<std::uint32_t>(names->size()) : 1;
}

// The resources are sorted by name, as in Slurm's database.
std::string sorted_tres(const AccountRow& v, std::uint32_t cpus, std::int64_t memory) {
  std::string text =
      v.step == nullptr ? fmt::format("billing={},", v.job->row.billing.value_or(cpus)) : "";
  text += fmt::format("cpu={}", cpus);
  const std::uint32_t gpus = v.step == nullptr ? v.job->row.gpus : v.step->gpus;
  if (gpus > 0) text += fmt::format(",gres/gpu={}", gpus);
  const auto rate = [&](std::string_view name, std::int64_t per_node) {
    if (per_node > 0) text += fmt::format(",{}={}", name, format_rate(per_node * nodes_of(v)));
  };
  rate("io", v.job->row.io_per_node);
  if (memory > 0) text += ",mem=" + format_memory(memory);
  rate("net", v.job->row.net_per_node);
  return text + fmt::format(",node={}", nodes_of(v));
}

// A step counts as having all of the job's resources on its nodes, because it may use them.
void put_alloc_tres(std::string& o, const AccountRow& v) {
  if (cpus_of(v) == 0) return;
  const std::int64_t of_node = v.job->alloc_memory / std::max(1u, v.job->row.nodes);
  o += sorted_tres(v, cpus_of(v), v.step == nullptr ? v.job->alloc_memory : of_node * nodes_of(v));
}

// A job that was ended by cancelling or its time limit has no exit code of its own; its steps have
// the signal.
ExitStatus shown_exit(const AccountRow& v) {
  if (v.step != nullptr) return v.step->exit;
  const auto outcome = v.job->row.outcome;
  const bool ended = outcome == Outcome::cancelled || outcome == Outcome::timeout;
  return ended ? ExitStatus{} : v.job->row.exit;
}

void put_node_list(std::string& o, const AccountRow& v) {
  const std::string& list = v.step != nullptr ? v.step->node_list : v.job->row.node_list;
  const bool batch = v.step != nullptr && v.step->step == "batch";
  o += list.empty() ? "None assigned" : batch ? first_node_of(list) : list;
}

void put_req_tres(std::string& o, const AccountRow& v) {
  o += sorted_tres(v, v.job->row.cpus, v.job->row.memory_per_node * v.job->row.nodes);
}

// The group's name if this machine knows it, else its number.
void put_group(std::string& o, const AccountRow& v) {
  if (v.step != nullptr) return;
  const std::string& group = v.job->group;
  const bool number = !group.empty() && group.find_first_not_of("0123456789") == std::string::npos;
  const ::group* known = number ? ::getgrgid(static_cast<gid_t>(std::stoul(group))) : nullptr;
  o += known != nullptr ? known->gr_name : group;
}

void put_gid(std::string& o, const AccountRow& v) {
  std::string name;
  put_group(name, v);
  if (const ::group* known = ::getgrnam(name.c_str())) o += std::to_string(known->gr_gid);
}

}  // namespace gantry::cli::slurm
