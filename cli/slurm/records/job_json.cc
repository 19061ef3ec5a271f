// Jobs with the keys and shapes of data_parser v0.0.43: those that clients read and that Gantry
// knows.
#include "cli/slurm/records/job_json.h"

#include <fmt/core.h>
#include <grp.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/columns/job_words.h"
#include "cli/columns/show_records.h"
#include "common/resources/resources.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

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

const proto::JobDetail& detail(const QueueRow& v) {
  static const proto::JobDetail none;
  return v.detail ? *v.detail : none;
}

std::string tres_per_node(const JobSpec& spec) {
  const JobShape& shape = spec.shape;
  const bool by_node = spec.given.gres || spec.given.gpus_per_node;
  const bool other = spec.given.gpus || spec.given.gpus_per_task;
  if (other && !by_node) return {};
  if (!shape.gpu_slice.empty() && shape.gpu_share > 0)
    return fmt::format("gres:mig:{}:{}", shape.gpu_slice, format_thousandths(shape.gpu_share));
  if (shape.gpus_per_node == 0) return {};
  if (!shape.gpu_slice.empty())
    return fmt::format("gres:mig:{}:{}", shape.gpu_slice, shape.gpus_per_node);
  const std::string model = shape.gpu_models.size() == 1 ? shape.gpu_models[0] + ":" : "";
  return fmt::format("gres:gpu:{}{}", model, shape.gpus_per_node);
}

std::optional<Instant> expected_end(const proto::JobRow& row) {
  if (row.ended) return row.ended;
  const auto start = row.started ? row.started : row.expected_start;
  if (!start || !row.time_limit) return std::nullopt;
  return *start + *row.time_limit + row.suspended;
}

std::string group_name(Gid gid) {
  const group* found = ::getgrgid(gid.value());
  return found != nullptr ? found->gr_name : std::to_string(gid.value());
}

bool is_held(const proto::JobRow& row) {
  return row.verdict.reason == Reason::held_user || row.verdict.reason == Reason::held_admin;
}

std::int64_t shown_priority(const proto::JobRow& row) {
  return is_held(row) ? 0 : row.priority;
}

std::string command_of(const JobSpec& spec) {
  std::string text = spec.script_path;
  for (const std::string& arg : spec.script_args)
    if (!text.empty()) text += " " + arg;
  return text;
}

// Waiting jobs and jobs that failed show their reason; other jobs that have ended show their nodes.
void put_reason_or_nodes(std::string& out, const proto::JobRow& row) {
  const bool ended = row.phase == Phase::ended && row.outcome;
  const bool failed =
      ended && (*row.outcome == Outcome::failed || *row.outcome == Outcome::timeout ||
                *row.outcome == Outcome::out_of_memory || *row.outcome == Outcome::deadline ||
                *row.outcome == Outcome::launch_failed);
  out += !ended || failed ? where_or_why(row) : row.node_list;
}

void put_command(std::string& out, const QueueRow& v) {
  text_or(out, command_of(spec(v)), "(null)");
}

void put_memory(std::string& out, const QueueRow& v) {
  const auto& each = spec(v).shape.memory_per_cpu;
  const std::int64_t bytes = each ? *each : v.row.memory_per_node;
  out += bytes == 0 ? "0" : format_memory(bytes);
}

void put_file(std::string& out, const QueueRow& v, const std::string& pattern) {
  if (!pattern.empty()) out += output_path(pattern, spec(v), v.row);
}

void put_time_left(std::string& out, const QueueRow& v) {
  if (!v.row.time_limit)
    out += "UNLIMITED";
  else
    out += format_duration(
        std::max(*v.row.time_limit - seconds(run_time(v.row, v.now).us / 1'000'000), Duration{}));
}

std::string tres_text(const proto::JobRow& row, std::int64_t memory) {
  std::string text = fmt::format("cpu={}", row.cpus);
  if (memory > 0) text += ",mem=" + format_memory(memory);
  text += fmt::format(",node={},billing={}", row.nodes, row.billing.value_or(row.cpus));
  if (row.gpus > 0) text += fmt::format(",gres/gpu={}", row.gpus);
  if (row.io_per_node > 0) text += ",io=" + format_rate(row.io_per_node * row.nodes);
  if (row.net_per_node > 0) text += ",net=" + format_rate(row.net_per_node * row.nodes);
  return text;
}

std::int64_t memory_in_all(const proto::JobDetail& job) {
  if (job.placement.empty()) return job.row.memory_per_node * job.row.nodes;
  std::int64_t memory = 0;
  for (const NodePlacement& place : job.placement) memory += place.memory;
  return memory;
}

void put_tres(std::string& out, const QueueRow& v) {
  out += v.row.node_list.empty() ? "N/A" : tres_text(v.row, memory_in_all(detail(v)));
}

void put_gpus_per_task(std::string& out, const QueueRow& v) {
  const JobShape& shape = spec(v).shape;
  if (!spec(v).given.gpus_per_task || shape.tasks == 0) {
    out += "N/A";
    return;
  }
  out += fmt::format("gres:gpu:{}", shape.gpus_per_task > 0
                                        ? shape.gpus_per_task
                                        : shape.gpus_per_node * shape.min_nodes / shape.tasks);
}

}  // namespace gantry::cli::slurm
