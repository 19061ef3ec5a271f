#include "cli/slurm/records/slurm_records.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/columns/job_words.h"
#include "cli/columns/node_values.h"
#include "cli/columns/show_records.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/records/account_fields.h"
#include "cli/slurm/records/job_json.h"
#include "cli/slurm/records/node_fields.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

std::string cpu_list(const NodePlacement& place) {
  const std::vector<std::uint32_t> cpus(place.cpus.begin(), place.cpus.end());
  return format_index_ranges(compress_indexes(cpus));
}

// Text like "gpu:a100:2(IDX:0-1)". "h100:" before a number of GPUs; "" if their model is not known.
// `at` is the index of the job's node.
std::string model_of(const proto::JobDetail& job, std::size_t at) {
  std::string model = at < job.gpu_models.size() ? job.gpu_models[at] : "";
  const auto& asked = job.spec.shape.gpu_models;
  if (model.empty() && asked.size() == 1) model = asked[0];
  return model.empty() ? model : model + ":";
}

std::string gres_of(const proto::JobDetail& job, std::size_t at) {
  const NodePlacement& place = job.placement[at];
  if (place.gpus.empty()) return {};
  std::vector<std::uint32_t> indexes;
  for (const GpuGrant& grant : place.gpus) indexes.push_back(grant.gpu);
  std::sort(indexes.begin(), indexes.end());
  indexes.erase(std::unique(indexes.begin(), indexes.end()), indexes.end());
  return fmt::format("gpu:{}{}(IDX:{})", model_of(job, at), place.gpus.size(),
                     format_index_ranges(compress_indexes(indexes)));
}

// What the job has on all its nodes: "gpu:h100:6". Slices and parts of GPUs are shown as asked for.
std::string gres_in_all(const proto::JobDetail& job) {
  const JobShape& shape = job.spec.shape;
  const std::string asked = tres_per_node(job.spec);
  if (job.placement.empty() || !shape.gpu_slice.empty() || shape.gpu_share > 0)
    return asked.starts_with("gres:") ? asked.substr(5) : asked;
  std::map<std::string, std::size_t> by_model;
  for (std::size_t i = 0; i < job.placement.size(); ++i)
    if (!job.placement[i].gpus.empty()) by_model[model_of(job, i)] += job.placement[i].gpus.size();
  std::string out;
  for (const auto& [model, count] : by_model)
    out += fmt::format("{}gpu:{}{}", out.empty() ? "" : ",", model, count);
  return out;
}

void job_names(RecordWriter& out, const proto::JobDetail& job, int details) {
  const proto::JobRow& row = job.row;
  const JobSpec& spec = job.spec;
  out.field("JobId", row.slurm_id().value());
  if (row.het) {
    out.field("HetJobId", row.het->leader.value()).field("HetJobOffset", row.het->offset);
  }
  if (row.array_job.value() != 0) {
    out.field("ArrayJobId", row.array_job.value());
    out.field("ArrayTaskId", row.array_task ? std::to_string(*row.array_task) : row.array_tasks);
    if (spec.array && spec.array->max_running)
      out.field("ArrayTaskThrottle", std::to_string(*spec.array->max_running));
  }
  out.field("JobName", row.name).line();
  if (row.het) out.field("HetJobIdSet", het_id_set(row)).line();
  out.field("UserId", fmt::format("{}({})", row.user, row.uid.value()));
  out.field("GroupId", fmt::format("{}({})", group_name(job.owner.gid), job.owner.gid.value()));
  out.field("MCS_label", "N/A").line();
  out.field("Priority", std::to_string(shown_priority(row)))
      .field("Nice", std::to_string(spec.nice));
  out.field("Account", row.account);
  out.field("QOS", spec.priority_class.empty() ? "normal" : spec.priority_class);
  if (!spec.wckey.empty()) out.field("WCKey", spec.wckey);
  out.line();
  out.field("JobState", words_of(row).state).field("Reason", reason_of(row));
  out.field("Dependency", dependency_left(job)).line();
  out.field("Requeue", spec.requeue ? "1" : "0").field("Restarts", row.restarts);
  out.field("BatchFlag", spec.kind == JobKind::batch ? "1" : "0").field("Reboot", "0");
  out.field("ExitCode", exit_text(row.exit)).line();
  if (details > 0) out.field("DerivedExitCode", exit_text(job.worst_step)).line();
}

void job_times(RecordWriter& out, const proto::JobDetail& job, Instant now) {
  const proto::JobRow& row = job.row;
  out.field("RunTime", format_duration_long(run_time(row, now)));
  out.field("TimeLimit", row.time_limit ? format_duration_long(*row.time_limit) : "UNLIMITED");
  out.field("TimeMin", job.spec.time_min ? format_duration_long(*job.spec.time_min) : "N/A").line();
  out.field("SubmitTime", shown_time(row.submitted));
  out.field("EligibleTime", shown_time(eligible_since(row), "Unknown")).line();
  out.field("AccrueTime", shown_time(eligible_since(row), "Unknown")).line();
  const auto ahead = row.expected_start ? row.expected_start : job.spec.begin;
  out.field("StartTime", shown_time(row.started ? row.started : ahead, "Unknown"));
  out.field("EndTime", shown_time(expected_end(row), "Unknown"));
  out.field("Deadline", shown_time(job.spec.deadline, "N/A")).line();
  out.field("SuspendTime", shown_time(job.suspended_since, "None"));
  // The time that it had run when it was suspended.
  out.field("SecsPreSuspend",
            std::to_string(job.suspended_since ? run_time(row, now).seconds() : 0));
  out.field("LastSchedEval", shown_time(row.started.value_or(now)));
  out.field("Scheduler", "Main").line();
}

std::string number_or_star(std::optional<std::uint32_t> number) {
  return number ? std::to_string(*number) : "*";
}

void job_place(RecordWriter& out, const proto::JobDetail& job, int details) {
  const proto::JobRow& row = job.row;
  const GivenOptions& given = job.spec.given;
  const JobShape& shape = job.spec.shape;
  out.field("Partition", row.partition);
  out.field("AllocNode:Sid", job.spec.submit_host + ":0").line();
  out.field("ReqNodeList", compress_hostlist(shape.required_nodes));
  out.field("ExcNodeList", compress_hostlist(shape.excluded_nodes)).line();
  out.field("NodeList", row.node_list);
  if (!row.node_list.empty()) {
    out.line();
    out.field("BatchHost", first_node_of(row.node_list));
  }
  if (!row.reservation.empty()) {
    out.line();
    out.field("Reservation", row.reservation);
  }
  out.line();
  out.field("NumNodes", row.nodes).field("NumCPUs", row.cpus).field("NumTasks", row.tasks);
  out.field("CPUs/Task", shape.cpus_per_task);
  out.field("ReqB:S:C:T", "0:0:*:" + number_or_star(given.threads_per_core)).line();
  const std::string tres = tres_text(row, memory_in_all(job));
  out.field("TRES", tres).line();
  out.field("ReqTRES", tres).line();
  out.field("AllocTRES", row.node_list.empty() ? "" : tres).line();
  out.field("Socks/Node", "*");
  out.field("NtasksPerN:B:S:C", fmt::format("{}:0:*:{}", shape.tasks_per_node.value_or(0),
                                            number_or_star(given.tasks_per_core)));
  out.field("CoreSpec", "*").line();
  if (details > 0) {
    out.field("JOB_GRES", gres_in_all(job)).line();
    for (std::size_t i = 0; i < job.placement.size(); ++i) {
      const NodePlacement& place = job.placement[i];
      out.field("  Nodes", place.node).field("CPU_IDs", cpu_list(place));
      out.field("Mem", std::to_string(place.memory >> 20)).field("GRES", gres_of(job, i)).line();
    }
  }
  out.field("MinCPUsNode", shape.cores_on_node(shape.tasks_per_node.value_or(1)));
  if (shape.memory_per_cpu)
    out.field("MinMemoryCPU", format_memory(*shape.memory_per_cpu));
  else
    out.field("MinMemoryNode", row.memory_per_node == 0 ? "0" : format_memory(row.memory_per_node));
  out.field("MinTmpDiskNode",
            shape.scratch_per_node == 0 ? "0" : format_memory(shape.scratch_per_node));
  out.line();
  out.field("Features", shape.constraint).field("DelayBoot", "00:00:00").line();
  out.field("OverSubscribe", shape.exclusive       ? "NO"
                             : given.oversubscribe ? "YES"
                                                   : "OK")
      .field("Contiguous", shape.node_layout == NodeLayout::next_to_each_other ? "1" : "0");
  out.field("Licenses", to_string(shape.licenses)).field("Network", "").line();
}

// A line for each option with which GPUs were requested.
void put_asked(RecordWriter& out, const AskedTres& tres, std::string_view whole_name,
               const std::string& whole) {
  const std::pair<std::string_view, const std::string&> lines[] = {
      {"CpusPerTres", tres.cpus},
      {"MemPerTres", tres.memory},
      {"TresBind", tres.bind},
      {"TresFreq", tres.freq},
      {whole_name, whole},
      {"TresPerNode", tres.per_node},
      {"TresPerSocket", tres.per_socket},
      {"TresPerTask", tres.per_task}};
  for (const auto& [name, value] : lines) {
    if (value.empty()) continue;
    out.line();
    out.field(name, value);
  }
}

void job_files(RecordWriter& out, const proto::JobDetail& job) {
  const JobSpec& spec = job.spec;
  const auto path = [&](const std::string& name) { return output_path(name, spec, job.row); };
  const std::string usual = spec.array ? "gantry-%A_%a.out" : "gantry-%j.out";
  const std::string std_out = path(spec.std_out.empty() ? usual : spec.std_out);
  out.field("Command", command_of(spec)).line();
  if (!spec.submit_line.empty()) {
    out.field("SubmitLine", spec.submit_line);
    out.line();
  }
  out.field("WorkDir", spec.work_dir);
  if (!spec.comment.empty()) {
    out.line();
    out.field("Comment", spec.comment);
  }
  if (!job.admin_comment.empty()) {
    out.line();
    out.field("AdminComment", job.admin_comment);
  }
  if (!job.system_comment.empty()) {
    out.line();
    out.field("SystemComment", job.system_comment);
  }
  if (spec.kind == JobKind::batch) {
    out.line();
    out.field("StdErr", spec.std_err.empty() ? std_out : path(spec.std_err)).line();
    out.field("StdIn", spec.std_in.empty() ? "/dev/null" : path(spec.std_in)).line();
    out.field("StdOut", std_out);
  }
  AskedTres tres = spec.given.tres;
  if (tres.per_node.empty()) tres.per_node = tres_per_node(spec);
  put_asked(out, tres, "TresPerJob", tres.per_job);
  if (const MailRequest& mail = spec.mail; mail.events) {
    const std::string to = fmt::format("{}", fmt::join(mail.to, ","));
    out.line();
    out.field("MailUser", to.empty() ? job.row.user : to);
    out.field("MailType", format_mail_events(*mail.events));
  }
}

}  // namespace

void slurm_job(RecordWriter& out, const proto::JobDetail& job, Instant now, int details) {
  job_names(out, job, details);
  job_times(out, job, now);
  job_place(out, job, details);
  job_files(out, job);
  out.record();
}

void slurm_node(RecordWriter& out, const proto::NodeRow& node) {
  const auto cores = [](const Resources& r) {
    return static_cast<std::uint64_t>(r[Resource::cpu] / kCoreUnit);
  };
  const auto megabytes = [](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes >> 20); };
  const std::string features = fmt::format("{}", fmt::join(node.features, ","));
  out.field("NodeName", node.name).field("Arch", "x86_64");
  out.field("CoresPerSocket", node.cores_per_socket).line();
  out.field("CPUAlloc", cores(node.allocated)).field("CPUEfctv", cores(node.total));
  out.field("CPUTot", cores(node.total)).field("CPULoad", fmt::format("{:.2f}", node.load)).line();
  out.field("AvailableFeatures", features).line();
  out.field("ActiveFeatures", features).line();
  out.field("Gres", gres_text(node)).line();
  out.field("NodeAddr",
            node.address.empty() ? node.name : node.address.substr(0, node.address.rfind(':')));
  out.field("NodeHostName", node.name).field("Version", kSlurmVersion.substr(6)).line();
  out.field("OS", "Linux").line();
  out.field("RealMemory", megabytes(node.total[Resource::memory]));
  out.field("AllocMem", megabytes(node.allocated[Resource::memory]));
  out.field("FreeMem", megabytes(node.free_memory));
  out.field("Sockets", node.sockets).field("Boards", "1").line();
  out.field("State", fmt::format("{}", fmt::join(state_words(node), "+")));
  out.field("ThreadsPerCore", node.threads_per_core);
  out.field("TmpDisk", megabytes(node.total[Resource::scratch])).field("Weight", "1");
  out.field("Owner", "N/A").field("MCS_label", "N/A").line();
  out.field("Partitions", fmt::format("{}", fmt::join(node.partitions, ","))).line();
  out.field("BootTime", shown_time(node.booted, "None"));
  out.field("SlurmdStartTime", shown_time(node.booted, "None")).line();
  out.field("LastBusyTime", shown_time(node.last_seen, "Unknown"));
  out.field("ResumeAfterTime", "None").line();
  out.field("CfgTRES", tres_of(node.total, true)).line();
  out.raw("AllocTRES", tres_of(node.allocated, false)).line();
  out.field("CurrentWatts", "n/a").field("AveWatts", "n/a");
  if (!node.reason.empty()) {
    out.line();
    out.field("Reason", fmt::format("{} [{}@{}]", node.reason, node.reason_by,
                                    shown_time(node.since, "Unknown")));
  }
  if (!node.comment.empty()) {
    out.line();
    out.field("Comment", node.comment);
  }
  if (!node.reservation.empty()) {
    out.line();
    out.field("ReservationName", node.reservation);
  }
  out.record();
}

namespace {

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "ALL" : fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

void slurm_partition(RecordWriter& out, const proto::PartitionRow& p, NodeMembers& members) {
  Resources total;
  for (const proto::NodeRow* node : members.of(p)) total += node->total;
  const std::int64_t cpus = total[Resource::cpu] / kCoreUnit;
  out.field("PartitionName", p.name).line();
  out.field("AllowGroups", listed(p.allow_groups));
  if (p.deny_accounts.empty())
    out.field("AllowAccounts", listed(p.allow_accounts));
  else
    out.field("DenyAccounts", listed(p.deny_accounts));
  if (p.deny_qos.empty())
    out.field("AllowQos", listed(p.allow_qos)).line();
  else
    out.field("DenyQos", listed(p.deny_qos)).line();
  out.field("AllocNodes", "ALL").field("Default", p.is_default ? "YES" : "NO");
  out.field("QoS", p.qos.empty() ? "N/A" : p.qos).line();
  out.field("DefaultTime", p.default_time ? format_duration_long(*p.default_time) : "NONE");
  out.field("DisableRootJobs", "NO").field("ExclusiveUser", "NO").field("GraceTime", "0");
  out.field("Hidden", "NO").line();
  out.field("MaxNodes", p.max_nodes ? std::to_string(*p.max_nodes) : "UNLIMITED");
  out.field("MaxTime", p.max_time ? format_duration_long(*p.max_time) : "UNLIMITED");
  // Slurm's minimum is 0, which means 1.
  out.field("MinNodes", p.min_nodes <= 1 ? 0 : p.min_nodes)
      .field("LLN", "NO")
      .field("MaxCPUsPerNode", "UNLIMITED")
      .line();
  out.field("Nodes", compress_hostlist(p.nodes)).line();
  out.field("PriorityJobFactor", std::max(p.priority, 1u));
  out.field("PriorityTier", std::max(p.priority, 1u));
  out.field("RootOnly", p.admins_only ? "YES" : "NO");
  out.field("ReqResv", p.reservation_only ? "YES" : "NO");
  out.field("OverSubscribe", p.exclusive_nodes ? "EXCLUSIVE" : "NO").line();
  out.field("OverTimeLimit", "NONE").field("PreemptMode", "REQUEUE").line();
  out.field("State", partition_state(p)).field("TotalCPUs", std::to_string(cpus));
  out.field("TotalNodes", p.nodes.size()).field("SelectTypeParameters", "NONE").line();
  out.field("JobDefaults", "").line();
  if (p.default_memory_per_cpu == 0)
    out.field("DefMemPerNode", "UNLIMITED");
  else
    out.field("DefMemPerCPU", std::to_string(p.default_memory_per_cpu >> 20));
  out.field("MaxMemPerNode", "UNLIMITED").line();
  std::string tres = fmt::format("cpu={},mem={},node={},billing={}", cpus,
                                 format_memory(total[Resource::memory]), p.nodes.size(), cpus);
  if (total[Resource::gpu] > 0)
    tres += fmt::format(",gres/gpu={}", total[Resource::gpu] / kGpuUnit);
  out.field("TRES", tres);
  if (!p.billing_weights.empty()) {
    out.line();
    out.field("TRESBillingWeights", p.billing_weights);
  }
  out.record();
}

namespace {

// In Slurm's order.
std::string reservation_flags(const proto::ReservationRow& row) {
  std::vector<std::string> flags;
  if (row.maintenance) flags.emplace_back("MAINT");
  switch (row.every) {
    case Recurrence::once: break;
    case Recurrence::hourly: flags.emplace_back("HOURLY"); break;
    case Recurrence::daily: flags.emplace_back("DAILY"); break;
    case Recurrence::weekdays: flags.emplace_back("WEEKDAY"); break;
    case Recurrence::weekends: flags.emplace_back("WEEKEND"); break;
    case Recurrence::weekly: flags.emplace_back("WEEKLY"); break;
  }
  if (!row.by_count) flags.emplace_back("SPEC_NODES");
  if (row.replacement == proto::NodeReplacement::used) flags.emplace_back("REPLACE");
  if (row.replacement == proto::NodeReplacement::down) flags.emplace_back("REPLACE_DOWN");
  if (row.purge_after) flags.push_back("PURGE_COMP=" + format_duration_long(*row.purge_after));
  return fmt::format("{}", fmt::join(flags, ","));
}

}  // namespace

void slurm_reservation(RecordWriter& out, const proto::ReservationRow& row) {
  out.field("ReservationName", row.name).field("StartTime", shown_time(row.start));
  out.field("EndTime", shown_time(row.end));
  out.field("Duration", format_duration_long(row.end - row.start)).line();
  out.field("Nodes", row.node_list).field("NodeCnt", row.nodes).field("CoreCnt", "0");
  out.field("Features", row.constraint).field("PartitionName", row.partition);
  out.field("Flags", reservation_flags(row)).line();
  out.field("TRES", fmt::format("node={}", row.nodes)).line();
  out.field("Users", fmt::format("{}", fmt::join(row.users, ","))).field("Groups", "");
  out.field("Accounts", fmt::format("{}", fmt::join(row.tenants, ","))).field("Licenses", "");
  out.field("State", row.active ? "ACTIVE" : "INACTIVE").field("BurstBuffer", "").line();
  out.field("MaxStartDelay", "");
  if (!row.comment.empty()) {
    out.line();
    out.field("Comment", row.comment);
  }
  out.record();
}

void slurm_step(RecordWriter& out, const proto::HistoryRow& job, const proto::StepRow& step) {
  out.field("StepId", fmt::format("{}.{}", shown_id(job.row), step.step));
  out.field("UserId", job.row.uid.value()).field("StartTime", shown_time(step.started));
  const std::string limit = step.time_limit ? format_duration_long(*step.time_limit) : "UNLIMITED";
  out.field("TimeLimit", limit).line();
  out.field("State", step_state(job, step));
  AccountRow row;
  row.job = &job;
  row.step = &step;
  std::string nodes, tres;
  put_node_list(nodes, row);
  put_alloc_tres(tres, row);
  out.field("Partition", job.row.partition).field("NodeList", nodes).line();
  out.field("Nodes", nodes_of(row)).field("CPUs", step.cpus).field("Tasks", step.tasks);
  out.field("Name", step.name).field("Network", "").line();
  out.field("TRES", tres).line();
  out.field("ResvPorts", "").line();
  out.field("CPUFreqReq", "Default").line();
  out.field("SrunHost:Pid", "");
  const AskedTres& asked = step.tres;
  std::string whole = fmt::format("cpu:{}", step.cpus);
  if (!asked.per_job.empty()) whole += "," + asked.per_job;
  put_asked(out, asked, "TresPerStep", whole);
  out.record();
}

}  // namespace gantry::cli::slurm
