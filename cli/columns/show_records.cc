#include "cli/columns/show_records.h"

#include "cli/columns/node_values.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/columns/account_columns.h"
#include "cli/columns/job_words.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string time_or(const std::optional<Instant>& t, std::string_view none) {
  return t ? format_time(*t) : std::string(none);
}

// The pattern of an output file, expanded as the job's node expands it. Parts that are not decided
// yet remain as they are.
std::string expanded(const std::string& pattern, const proto::JobRow& row) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char letter = pattern[at] == '%' && at + 1 < pattern.size() ? pattern[at + 1] : 0;
    const std::uint64_t array = row.array_job.value();
    const bool is_rest = array != 0 && !row.array_task;
    std::string value;
    if (letter == 'j' && !is_rest) value = std::to_string(row.job.value());
    if (letter == 'A') value = std::to_string(array != 0 ? array : row.job.value());
    if (letter == 'a' && row.array_task) value = std::to_string(*row.array_task);
    if (letter == 'x') value = row.name;
    if (letter == 'u') value = row.user;
    if (letter == '%') value = "%";
    if (value.empty()) {
      out += pattern[at];
    } else {
      out += value;
      ++at;
    }
  }
  return out;
}

void write_sizes(RecordWriter& out, const proto::JobDetail& job) {
  const JobShape& shape = job.spec.shape;
  out.line();
  out.field("NumNodes", job.row.nodes).field("NumCPUs", job.row.cpus);
  out.field("NumTasks", job.row.tasks).field("CPUs/Task", shape.cpus_per_task);
  if (shape.tasks_per_node) out.field("NtasksPerNode", *shape.tasks_per_node);
  out.line();
  std::int64_t memory = 0;
  for (const NodePlacement& place : job.placement) memory += place.memory;
  if (job.placement.empty()) memory = job.row.memory_per_node * job.row.nodes;
  out.field("TRES",
            fmt::format("cpu={},mem={},node={}{}", job.row.cpus, format_memory(memory),
                        job.row.nodes, has_gpus(job.row) ? ",gres/gpu=" + gpus_text(job.row) : ""));
  out.line();
  if (shape.memory_per_cpu)
    out.field("MinMemoryCPU", format_memory(*shape.memory_per_cpu));
  else
    out.field("MinMemoryNode",
              job.row.memory_per_node == 0 ? "0" : format_memory(job.row.memory_per_node));
  out.field("MinTmpDiskNode",
            shape.scratch_per_node == 0 ? "0" : format_memory(shape.scratch_per_node));
  if (!shape.gres.empty()) out.field("Gres", to_string(shape.gres));
  if (!shape.licenses.empty()) out.field("Licenses", to_string(shape.licenses));
  out.field("Features", shape.constraint);
  out.field("OverSubscribe", shape.exclusive ? "NO" : "OK");
  for (const NodePlacement& place : job.placement) {
    const std::vector<std::uint32_t> cpus(place.cpus.begin(), place.cpus.end());
    out.line();
    out.field("Nodes", place.node).field("CPU_IDs", format_index_ranges(compress_indexes(cpus)));
    out.field("Mem", format_memory(place.memory));
  }
}

std::string secret_text(const SecretUse& use) {
  std::string text = use.name;
  if (use.version != 0) text += fmt::format("@{}", use.version);
  return use.file.empty() ? text : text + ":" + use.file;
}

void write_files(RecordWriter& out, const JobSpec& spec, const proto::JobRow& row) {
  const auto path = [&](const std::string& name) { return output_path(name, spec, row); };
  const std::string fallback = spec.array ? "gantry-%A_%a.out" : "gantry-%j.out";
  const std::string std_out = path(spec.std_out.empty() ? fallback : spec.std_out);
  out.line();
  out.field("SubmitLine", spec.submit_line);
  out.line();
  out.field("WorkDir", spec.work_dir);
  out.line();
  out.field("StdErr", spec.std_err.empty() ? std_out : path(spec.std_err));
  out.line();
  out.field("StdIn", spec.std_in.empty() ? "/dev/null" : path(spec.std_in));
  out.line();
  out.field("StdOut", std_out);
  if (!spec.secrets.empty() || !spec.identity_audiences.empty()) {
    out.line();
    std::vector<std::string> secrets;
    for (const SecretUse& use : spec.secrets) secrets.push_back(secret_text(use));
    if (!secrets.empty()) out.field("Secrets", joined(secrets, ","));
    if (!spec.identity_audiences.empty())
      out.field("Identity", joined(spec.identity_audiences, ","));
  }
  if (!spec.datasets.empty()) {
    std::vector<std::string> datasets;
    for (const DatasetUse& use : spec.datasets)
      datasets.push_back(use.name + (use.write ? ":rw" : ""));
    out.line();
    out.field("Datasets", joined(datasets, ","));
  }
  for (const StageCopy& copy : spec.stage_in) {
    out.line();
    out.field("StageIn", copy.key + ":" + copy.path);
  }
  for (const StageCopy& copy : spec.stage_out) {
    out.line();
    out.field("StageOut", copy.path + ":" + copy.key);
  }
  if (spec.sandbox) {
    out.line();
    out.field("Sandbox", enum_name(*spec.sandbox));
  }
  if (!spec.container.image.empty()) {
    out.line();
    out.field("ContainerImage", spec.container.image);
    if (!spec.container.mounts.empty())
      out.field("ContainerMounts", joined(spec.container.mounts, ","));
  }
}

}  // namespace

namespace {
void add_dependency(std::string& text, const Dependency& d, bool any) {
  if (!text.empty()) text += any ? "?" : ",";
  text += enum_name(d.kind);
  if (d.kind == DependencyKind::singleton) return;
  text += fmt::format(":{}", d.job.value());
  if (d.array_task) text += fmt::format("_{}", *d.array_task);
  if (d.delay.us != 0) text += fmt::format("+{}", d.delay.seconds() / 60);
}
}  // namespace

std::string dependency_text(const JobSpec& spec) {
  std::string text;
  for (const Dependency& d : spec.dependencies) add_dependency(text, d, spec.any_dependency);
  return text;
}

std::string dependency_left(const proto::JobDetail& job) {
  std::string text;
  for (const proto::OpenDependency& open : job.waits_for) {
    add_dependency(text, open.what, job.spec.any_dependency);
    text += open.never ? "(failed)" : "(unfulfilled)";
  }
  return text;
}

std::string output_path(const std::string& pattern, const JobSpec& spec, const proto::JobRow& row) {
  const std::string file = expanded(pattern, row);
  return file.starts_with('/') ? file : spec.work_dir + "/" + file;
}

namespace {

void write_ids(RecordWriter& out, const proto::JobRow& row) {
  out.field("JobId", row.job.value());
  if (row.het) {
    out.field("HetJobId", row.het->leader.value()).field("HetJobOffset", row.het->offset);
  }
  if (row.array_job.value() != 0) {
    out.field("ArrayJobId", row.array_job.value());
    out.field("ArrayTaskId", row.array_task ? std::to_string(*row.array_task) : row.array_tasks);
  }
  out.field("JobName", row.name).line();
}

void write_used(RecordWriter& out, const proto::JobRow& row, const Usage& usage) {
  if (!row.started) return;
  out.line();
  out.field("TotalCPU", cpu_time(usage.cpu_user_us + usage.cpu_system_us));
  out.field("MaxRSS", format_memory_rounded(usage.memory_peak_bytes));
}

void write_cause(RecordWriter& out, const std::string& cause) {
  if (cause.empty()) return;
  out.line();
  out.field("Cause", cause);
}

void write_labels(RecordWriter& out, const std::map<std::string, std::string>& labels,
                  const std::optional<WorkType>& type) {
  if (labels.empty() && !type) return;
  out.line();
  if (!labels.empty()) out.field("Labels", labels_text(labels));
  if (type) out.field("Type", std::string(enum_name(*type)));
}

}  // namespace

void write_ended_job(RecordWriter& out, const proto::HistoryRow& job, Instant now) {
  const proto::JobRow& row = job.row;
  write_ids(out, row);
  if (row.het) out.field("HetJobIdSet", het_id_set(row)).line();
  out.field("UserId", fmt::format("{}({})", row.user, row.uid.value()));
  out.field("GroupId", job.group).field("Account", row.account).line();
  out.field("JobState", words_of(row).state).field("Reason", reason_of(row));
  out.field("Restarts", row.restarts).field("ExitCode", exit_text(row.exit)).line();
  out.field("RunTime", format_duration_long(run_time(row, now)));
  out.field("TimeLimit", row.time_limit ? format_duration_long(*row.time_limit) : "UNLIMITED")
      .line();
  out.field("SubmitTime", format_time(row.submitted)).line();
  out.field("StartTime", time_or(row.started, "None"));
  out.field("EndTime", time_or(row.ended, "Unknown")).line();
  out.field("Partition", row.partition).line();
  if (!row.reservation.empty()) out.field("Reservation", row.reservation).line();
  out.field("NodeList", row.node_list).field("NumNodes", row.nodes);
  out.field("NumCPUs", row.cpus).field("NumTasks", row.tasks).line();
  out.field("SubmitLine", job.submit_line).line();
  out.field("WorkDir", job.work_dir).line();
  if (job.sandbox) out.field("Sandbox", enum_name(*job.sandbox)).line();
  out.field("Comment", job.comment);
  write_labels(out, job.labels, job.work_type);
  write_used(out, row, job.usage);
  write_cause(out, job.cause);
  out.record();
}

void write_job(RecordWriter& out, const proto::JobDetail& job, Instant now) {
  const proto::JobRow& row = job.row;
  const JobSpec& spec = job.spec;
  write_ids(out, row);
  if (row.het) out.field("HetJobIdSet", het_id_set(row)).line();
  out.field("UserId", fmt::format("{}({})", row.user, row.uid.value()));
  out.field("GroupId", job.owner.gid.value()).line();
  out.field("Priority", std::to_string(row.priority)).field("Nice", std::to_string(spec.nice));
  out.field("Account", row.account).line();
  out.field("JobState", words_of(row).state).field("Reason", reason_of(row));
  out.field("Dependency", dependency_text(spec)).line();
  out.field("Requeue", spec.requeue ? "1" : "0").field("Restarts", row.restarts);
  out.field("BatchFlag", spec.kind == JobKind::batch ? "1" : "0");
  out.field("ExitCode", exit_text(row.exit)).line();
  out.field("RunTime", format_duration_long(run_time(row, now)));
  out.field("TimeLimit", row.time_limit ? format_duration_long(*row.time_limit) : "UNLIMITED")
      .line();
  out.field("SubmitTime", format_time(row.submitted))
      .field("EligibleTime", eligible_since(row) ? format_time(row.eligible) : "Unknown")
      .line();
  out.field("StartTime", time_or(row.started ? row.started : row.expected_start, "Unknown"));
  out.field("EndTime", time_or(expected_end_of(row), "Unknown"))
      .field("Deadline", time_or(spec.deadline, "N/A"))
      .line();
  out.field("Partition", row.partition).line();
  if (!row.reservation.empty()) out.field("Reservation", row.reservation).line();
  out.field("ReqNodeList", compress_hostlist(spec.shape.required_nodes));
  out.field("ExcNodeList", compress_hostlist(spec.shape.excluded_nodes)).line();
  out.field("NodeList", row.node_list);
  if (!job.placement.empty()) {
    out.line();
    out.field("BatchHost", job.placement[0].node);
  }
  write_sizes(out, job);
  write_files(out, spec, row);
  out.line();
  out.field("Comment", spec.comment);
  write_labels(out, spec.labels, spec.work_type);
  write_used(out, row, job.usage);
  if (job.checkpoint || job.preemptions > 0) {
    out.line();
    out.field("LastCheckpoint", time_or(job.checkpoint, "N/A"));
    out.field("Preemptions", job.preemptions);
  }
  write_cause(out, job.cause);
  out.record();
}

namespace {

std::string sandboxes_of(const proto::NodeRow& node) {
  std::vector<std::string> out{"standard"};
  for (const SandboxFact& fact : node.sandboxes)
    if (fact.why_not.empty()) out.emplace_back(enum_name(fact.level));
  return joined(out, ",");
}

}  // namespace

void write_node(RecordWriter& out, const proto::NodeRow& node) {
  std::string state = upper(node_state(node));
  if (node.intent == NodeIntent::drain) {
    // Slurm joins two states: the node's present state, and what its operator wants.
    const bool busy = node.jobs > 0;
    state = std::string(busy ? "MIXED" : "IDLE") + "+DRAIN";
    if (node.health != NodeHealth::up) state = "DOWN+DRAIN";
  }
  out.field("NodeName", node.name).field("State", state).field("Health", enum_name(node.health));
  out.field("Intent", enum_name(node.intent)).line();
  out.field("NodeAddr", node.address).field("Version", node.version).line();
  out.field("CPUAlloc", std::to_string(node.allocated[Resource::cpu] / 1000));
  out.field("CPUTot", std::to_string(node.total[Resource::cpu] / 1000));
  out.field("CPULoad", fmt::format("{:.2f}", node.load)).line();
  out.field("ActiveFeatures", joined(node.features, ",")).line();
  out.field("RealMemory", std::to_string(node.total[Resource::memory] >> 20));
  out.field("AllocMem", std::to_string(node.allocated[Resource::memory] >> 20));
  out.field("FreeMem", std::to_string(node.free_memory >> 20));
  out.field("TmpDisk", std::to_string(node.total[Resource::scratch] >> 20)).line();
  out.field("Sockets", node.sockets).field("CoresPerSocket", node.cores_per_socket);
  out.field("ThreadsPerCore", node.threads_per_core).field("Jobs", node.jobs).line();
  out.field("Partitions", joined(node.partitions, ",")).line();
  out.field("Runtime", node.runtime);
  out.field("IsolationOff", node.layers_off.empty() ? "none" : joined(node.layers_off, ",")).line();
  out.field("Sandboxes", sandboxes_of(node)).line();
  out.field("BootTime", time_or(node.booted, "Unknown"));
  out.field("LastSeen", time_or(node.last_seen, "Unknown")).line();
  out.field("CfgTRES", to_string(node.total)).line();
  out.field("AllocTRES", to_string(node.allocated));
  if (!node.reservation.empty()) {
    out.line();
    out.field("Reservation", node.reservation);
  }
  if (!node.gpu_trouble.empty()) {
    out.line();
    out.field("GpuTrouble", node.gpu_trouble);
  }
  if (!node.reason.empty()) {
    out.line();
    out.field("Reason",
              fmt::format("{} [{}@{}]", node.reason, node.reason_by, time_or(node.since, "?")));
  }
  if (!node.comment.empty()) {
    out.line();
    out.field("Comment", node.comment);
  }
  out.record();
}

void write_partition(RecordWriter& out, const proto::PartitionRow& p, NodeMembers& members) {
  std::int64_t cpus = 0;
  for (const proto::NodeRow* node : members.of(p)) cpus += node->total[Resource::cpu] / 1000;
  out.field("PartitionName", p.name).line();
  out.field("Default", p.is_default ? "YES" : "NO").field("State", partition_state(p));
  out.field("PriorityTier", p.priority).line();
  out.field("DefaultTime", p.default_time ? format_duration_long(*p.default_time) : "NONE");
  out.field("MaxTime", p.max_time ? format_duration_long(*p.max_time) : "UNLIMITED");
  out.field("MinNodes", p.min_nodes);
  out.field("MaxNodes", p.max_nodes ? std::to_string(*p.max_nodes) : "UNLIMITED").line();
  out.field("Nodes", compress_hostlist(p.nodes)).line();
  out.field("TotalCPUs", std::to_string(cpus)).field("TotalNodes", p.nodes.size());
  out.field("DefMemPerCPU", p.default_memory_per_cpu == 0
                                ? "UNLIMITED"
                                : std::to_string(p.default_memory_per_cpu >> 20));
  out.field("HostNetwork", p.allow_host_network ? "YES" : "NO");
  const auto list = [&](std::string_view key, const std::vector<std::string>& names) {
    if (!names.empty()) out.field(key, fmt::format("{}", fmt::join(names, ",")));
  };
  list("AllowAccounts", p.allow_accounts);
  list("DenyAccounts", p.deny_accounts);
  list("AllowGroups", p.allow_groups);
  list("AllowQos", p.allow_qos);
  list("DenyQos", p.deny_qos);
  if (p.exclusive_nodes) out.field("ExclusiveNodes", "YES");
  if (p.admins_only) out.field("AdminsOnly", "YES");
  if (p.reservation_only) out.field("ReservationOnly", "YES");
  if (!p.qos.empty()) out.field("Qos", p.qos);
  if (!p.billing_weights.empty()) out.field("BillingWeights", p.billing_weights);
  if (p.changed) {
    out.line();
    out.field("SetByCommand",
              p.set_options.empty() ? "(all)" : fmt::format("{}", fmt::join(p.set_options, ",")));
    out.field("By", fmt::format("{}@{}", p.changed_by, time_or(p.changed, "?")));
  }
  out.record();
}

}  // namespace gantry::cli
