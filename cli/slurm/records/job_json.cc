// Jobs with the keys and shapes of data_parser v0.0.43: those that clients read and that Gantry
// knows.
#include "cli/slurm/records/job_json.h"

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/columns/job_words.h"
#include "cli/columns/show_records.h"
#include "cli/slurm/records/job_values.h"
#include "common/text/hostlist.h"

namespace gantry::cli::slurm {
namespace {

void add_time(Tree& tree, std::string_view key, const std::optional<Instant>& t) {
  tree.add_set(key, t ? t->us / 1'000'000 : 0);
}

// Returns null for a job that has no nodes.
Tree resources_tree(const QueueRow& v) {
  if (v.row.node_list.empty()) return Tree::null();
  const auto names = expand_hostlist(v.row.node_list).value_or(std::vector<std::string>{});
  Tree list = Tree::list();
  const auto add_node = [&](const std::string& name, std::size_t cpus, std::int64_t memory) {
    Tree used = Tree::object();
    used.add("count", static_cast<std::int64_t>(cpus)).add("used", static_cast<std::int64_t>(cpus));
    Tree bytes = Tree::object();
    bytes.add("used", std::int64_t{0}).add("allocated", memory >> 20);
    Tree node = Tree::object();
    node.add("name", name).add("cpus", std::move(used)).add("memory", std::move(bytes));
    list.add("", std::move(node));
  };
  const auto& placement = detail(v).placement;
  for (const NodePlacement& place : placement)
    add_node(place.node, place.cpus.size(), place.memory);
  if (placement.empty())
    for (const std::string& name : names)
      add_node(name, v.row.cpus / std::max<std::size_t>(names.size(), 1), v.row.memory_per_node);
  Tree nodes = Tree::object();
  nodes.add("count", static_cast<std::int64_t>(names.size())).add("select_type", Tree::words({}));
  nodes.add("list", v.row.node_list).add("whole", Tree::boolean(spec(v).shape.exclusive));
  nodes.add("allocation", std::move(list));
  Tree tree = Tree::object();
  tree.add("select_type", Tree::words({"CPU", "MEMORY"})).add("nodes", std::move(nodes));
  return tree.add("cpus", std::int64_t{v.row.cpus}).add("threads_per_core", [] {
    Tree none = Tree::object();
    none.add("set", Tree::boolean(false)).add("infinite", Tree::boolean(false));
    return none.add("number", std::int64_t{0});
  }());
}

void add_names(Tree& tree, const QueueRow& v) {
  const proto::JobRow& row = v.row;
  const JobSpec& job = spec(v);
  tree.add("account", row.account).add("admin_comment", detail(v).admin_comment);
  const auto array = static_cast<std::int64_t>(row.array_job.value());
  array != 0 ? tree.add_set("array_job_id", array) : tree.add_set("array_job_id", 0);
  row.array_task ? tree.add_set("array_task_id", *row.array_task) : tree.add_unset("array_task_id");
  tree.add("array_task_string", row.array_tasks)
      .add("batch_flag", Tree::boolean(job.kind == JobKind::batch));
  tree.add("batch_host", first_node_of(row.node_list)).add("cluster", v.cluster);
  tree.add("command", command_of(job)).add("comment", job.comment);
  tree.add("container", job.container.image).add("current_working_directory", job.work_dir);
  tree.add("dependency", dependency_left(detail(v)));
  tree.add("excluded_nodes", compress_hostlist(job.shape.excluded_nodes));
  tree.add("required_nodes", compress_hostlist(job.shape.required_nodes));
  tree.add("features", job.shape.constraint)
      .add("group_id", std::int64_t{detail(v).owner.gid.value()});
  tree.add("group_name", v.detail ? group_name(detail(v).owner.gid) : "");
  tree.add_set("het_job_id", row.het ? static_cast<std::int64_t>(row.het->leader.value()) : 0);
  tree.add("het_job_id_set", het_id_set(row));
  row.het ? tree.add_set("het_job_offset", row.het->offset) : tree.add_unset("het_job_offset");
  tree.add("job_id", static_cast<std::int64_t>(row.slurm_id().value()));
  tree.add("name", row.name).add("nodes", row.node_list).add("partition", row.partition);
  tree.add("qos", job.priority_class).add("reservation", "").add("resv_name", row.reservation);
  tree.add("user_id", std::int64_t{row.uid.value()}).add("user_name", row.user);
  tree.add("wckey", job.wckey);
  tree.add("licenses", to_string(job.shape.licenses)).add("mcs_label", "");
  tree.add("submit_line", job.submit_line);
  const auto file = [&](const std::string& pattern) {
    return pattern.empty() ? std::string() : output_path(pattern, job, row);
  };
  const std::string out = file(job.std_out);
  tree.add("standard_error", job.std_err.empty() ? out : file(job.std_err));
  tree.add("standard_input", job.std_in.empty() ? "/dev/null" : file(job.std_in));
  tree.add("standard_output", out);
}

void add_sizes(Tree& tree, const QueueRow& v) {
  const proto::JobRow& row = v.row;
  const JobShape& shape = spec(v).shape;
  tree.add_set("cpus", row.cpus).add_set("node_count", row.nodes).add_set("tasks", row.tasks);
  tree.add_set("cpus_per_task", shape.cpus_per_task);
  shape.tasks_per_node ? tree.add_set("tasks_per_node", *shape.tasks_per_node)
                       : tree.add_unset("tasks_per_node");
  if (shape.memory_per_cpu)
    tree.add_set("memory_per_cpu", *shape.memory_per_cpu >> 20).add_unset("memory_per_node");
  else
    tree.add_unset("memory_per_cpu").add_set("memory_per_node", row.memory_per_node >> 20);
  tree.add_set("minimum_cpus_per_node",
               static_cast<std::uint32_t>(shape.cores_on_node(shape.tasks_per_node.value_or(1))));
  tree.add_set("minimum_tmp_disk_per_node", shape.scratch_per_node >> 20);
  const std::string tres = tres_text(row, memory_in_all(detail(v)));
  tree.add("tres_req_str", tres).add("tres_alloc_str", row.node_list.empty() ? "" : tres);
  tree.add("tres_per_node", tres_per_node(spec(v)))
      .add("tres_per_job", "")
      .add("tres_per_task", "");
  tree.add("gres_detail", Tree::list()).add("job_resources", resources_tree(v));
}

Tree job_tree(const QueueRow& v) {
  const proto::JobRow& row = v.row;
  Tree tree = Tree::object();
  add_names(tree, v);
  tree.add("job_state", Tree::words({std::string(words_of(row).state)}));
  tree.add("state_reason", reason_of(row)).add("state_description", "");
  tree.add("exit_code", exit_code_tree(row.exit));
  tree.add("derived_exit_code", exit_code_tree(row.exit));
  add_sizes(tree, v);
  add_time(tree, "submit_time", row.submitted);
  add_time(tree, "eligible_time", row.eligible);
  add_time(tree, "start_time", row.started ? row.started : row.expected_start);
  add_time(tree, "end_time", expected_end(row));
  add_time(tree, "deadline", spec(v).deadline);
  add_time(tree, "accrue_time", row.eligible);
  add_time(tree, "last_sched_evaluation", row.started.value_or(v.now));
  add_time(tree, "suspend_time", detail(v).suspended_since);
  const std::size_t throttle = row.array_tasks.find('%');
  tree.add_set("array_max_tasks", throttle == std::string::npos
                                      ? 0
                                      : std::atoll(row.array_tasks.c_str() + throttle + 1));
  tree.add("allocating_node", spec(v).submit_host).add("system_comment", "");
  row.time_limit ? tree.add_set("time_limit", row.time_limit->seconds() / 60)
                 : tree.add_infinite("time_limit");
  tree.add_set("priority", shown_priority(row)).add("nice", std::int64_t{spec(v).nice});
  tree.add("requeue", Tree::boolean(spec(v).requeue));
  tree.add("restart_cnt", std::int64_t{row.restarts});
  tree.add("hold", Tree::boolean(is_held(row)));
  tree.add("shared", Tree::words(spec(v).shape.exclusive ? std::vector<std::string>{"none"}
                                                         : std::vector<std::string>{}));
  return tree;
}

}  // namespace

Tree exit_code_tree(const ExitStatus& exit) {
  Tree signal = Tree::object();
  exit.signal != 0 ? signal.add_set("id", exit.signal) : signal.add_unset("id");
  const char* name = exit.signal != 0 ? ::sigabbrev_np(exit.signal) : nullptr;
  signal.add("name", name != nullptr ? name : "");
  Tree tree = Tree::object();
  tree.add("status", Tree::words({exit.signal != 0 ? "SIGNALED"
                                  : exit.code != 0 ? "ERROR"
                                                   : "SUCCESS"}));
  tree.add_set("return_code", exit.code);
  return tree.add("signal", std::move(signal));
}

Tree jobs_tree(const std::vector<QueueRow>& rows) {
  Tree list = Tree::list();
  for (const QueueRow& row : rows) list.add("", job_tree(row));
  return list;
}

}  // namespace gantry::cli::slurm
