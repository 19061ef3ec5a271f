#include "cli/slurm/records/account_json.h"

#include <algorithm>
#include <cstdlib>

#include "cli/option.h"
#include "cli/slurm/records/history.h"
#include "cli/slurm/records/job_json.h"
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

}  // namespace gantry::cli::slurm
