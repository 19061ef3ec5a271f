#include "cli/slurm/account_json.h"

#include "cli/slurm/history.h"
#include "cli/slurm/job_json.h"

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
  id.add("id", std::to_string(v.job->row.job.value()) + "." + v.step->step);
  id.add("name", v.step->name);
  Tree tree = Tree::object();
  tree.add("step", std::move(id)).add("state", Tree::words({state_with_canceller(v)}));
  tree.add("exit_code", exit_code_tree(v.step->exit)).add("time", sacct_time_tree(v));
  Tree nodes = Tree::object();
  tree.add("nodes", nodes.add("range", v.step->node_list));
  Tree tasks = Tree::object();
  return tree.add("tasks", tasks.add("count", std::int64_t{v.step->tasks}));
}

}  // namespace

Tree sacct_job_tree(const AccountRow& v) {
  const proto::JobRow& row = v.job->row;
  const std::string state = state_with_canceller(v);
  Tree tree = Tree::object();
  tree.add("account", row.account).add("allocation_nodes", std::int64_t{row.nodes});
  Tree array = Tree::object();
  array.add("job_id", static_cast<std::int64_t>(row.array_job.value()));
  row.array_task ? array.add_set("task_id", *row.array_task) : array.add_unset("task_id");
  tree.add("array", array.add("task", row.array_tasks)).add("cluster", v.cluster);
  Tree comment = Tree::object();
  comment.add("administrator", "").add("job", v.job->comment).add("system", "");
  tree.add("comment", std::move(comment)).add("exit_code", exit_code_tree(row.exit));
  Tree het = Tree::object();
  het.add("job_id", row.het ? static_cast<std::int64_t>(row.het->leader.value()) : 0);
  row.het ? het.add_set("job_offset", row.het->offset) : het.add_unset("job_offset");
  tree.add("het", std::move(het));
  tree.add("group", v.job->group).add("job_id", static_cast<std::int64_t>(row.job.value()));
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
  tree.add("user", row.user).add("working_directory", v.job->work_dir);
  Tree steps = Tree::list();
  for (const proto::StepRow& step : v.job->steps)
    steps.add("", sacct_step_tree({v.job, &step, v.now, v.units, v.cluster}));
  return tree.add("steps", std::move(steps));
}

}  // namespace gantry::cli::slurm
