// The table of sacct's fields and the code that computes them.
#include "cli/slurm/records/account_fields.h"

#include <fmt/core.h>

#include "cli/columns/account_columns.h"
#include "cli/columns/job_words.h"
#include "cli/slurm/records/history.h"
#include "cli/slurm/records/job_values.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using A = const AccountRow&;
using Out = std::string&;

const Usage& usage_of(A v) {
  return v.step != nullptr ? v.step->usage : v.job->usage;
}

// The time from submit until the start. If the job has not started, it lasts until now or until the
// job's end.
Duration waited_of(A v) {
  const proto::JobRow& row = v.job->row;
  return std::max(row.started.value_or(row.ended.value_or(v.now)) - row.submitted, Duration{});
}

std::string step_suffix(A v) {
  return v.step == nullptr ? "" : "." + v.step->step;
}

ExitStatus derived_exit(const proto::HistoryRow& job) {
  ExitStatus worst;
  for (const proto::StepRow& step : job.steps)
    if (step.step != "batch" && step.step != "extern" && step.exit.code > worst.code)
      worst = step.exit;
  return worst;
}

void put_size(Out o, A v, std::int64_t bytes) {
  const auto scaled = [&](int shift, char letter) {
    const double value = static_cast<double>(bytes) / static_cast<double>(std::int64_t{1} << shift);
    std::string text = fmt::format("{:.2f}", value);
    if (text.ends_with(".00")) text.resize(text.size() - 3);
    o += text + letter;
  };
  switch (v.units) {
    case Units::bytes: o += std::to_string(bytes); return;
    case Units::kilo: return scaled(10, 'K');
    case Units::mega: return scaled(20, 'M');
    case Units::giga: return scaled(30, 'G');
    case Units::tera: return scaled(40, 'T');
    case Units::usual: break;
  }
  if (bytes == 0)
    o += '0';
  else if (bytes % (1 << 20) == 0)
    o += format_memory(bytes);
  else
    o += fmt::format("{}K", (bytes + 1023) / 1024);
}

// Usage is shown for steps; a job's own line has none, as in Slurm.
void put_step_bytes(Out o, A v, std::int64_t bytes) {
  if (v.step == nullptr || v.step->step == "extern") return;
  if (v.units == Units::usual)
    o += bytes == 0 ? "0" : fmt::format("{}K", (bytes + 1023) / 1024);
  else
    put_size(o, v, bytes);
}

void put_step_node(Out o, A v) {
  if (v.step != nullptr) o += first_node_of(v.step->node_list);
}

void put_usage_in(Out o, A v) {
  if (v.step == nullptr || v.step->step == "extern") return;
  const Usage& u = usage_of(v);
  o += fmt::format("cpu={},fs/disk={},mem={}K",
                   format_duration_long(microseconds(u.cpu_user_us + u.cpu_system_us)),
                   u.io_read_bytes, (u.memory_peak_bytes + 1023) / 1024);
}

void put_usage_out(Out o, A v) {
  if (v.step != nullptr && v.step->step != "extern")
    o += fmt::format("fs/disk={}", usage_of(v).io_write_bytes);
}

constexpr Field<AccountRow> kAccountFields[] = {
    {.name = "Account", .put = [](Out o, A v) { o += v.job->row.account; }, .width = 10},
    {.name = "AdminComment", .put = [](Out, A) {}, .width = 19},
    {.name = "AllocCPUS", .put = [](Out o, A v) { put_number(o, cpus_of(v)); }, .width = 10},
    {.name = "AllocNodes",
     .put = [](Out o, A v) { put_number(o, v.job->row.node_list.empty() ? 0 : nodes_of(v)); },
     .width = 10},
    {.name = "AllocTRES", .put = [](Out o, A v) { put_alloc_tres(o, v); }, .width = 10},
    {.name = "AssocID", .put = [](Out, A) {}, .width = 7},
    {.name = "AveCPU",
     .put =
         [](Out o, A v) {
           if (v.step != nullptr && v.step->tasks > 0)
             o += cpu_time((usage_of(v).cpu_user_us + usage_of(v).cpu_system_us) / v.step->tasks);
         },
     .width = 10},
    {.name = "AveCPUFreq", .put = [](Out, A) {}, .width = 10},
    {.name = "AveDiskRead",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_read_bytes); },
     .width = 14},
    {.name = "AveDiskWrite",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_write_bytes); },
     .width = 14},
    {.name = "AvePages", .put = [](Out, A) {}, .width = 10},
    {.name = "AveRSS",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).memory_peak_bytes); },
     .width = 10},
    {.name = "AveVMSize", .put = [](Out, A) {}, .width = 10},
    {.name = "BlockID", .put = [](Out, A) {}, .width = 16},
    {.name = "Cluster", .put = [](Out o, A v) { o += v.cluster; }, .width = 10},
    {.name = "Comment",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->comment;
         },
     .width = 14},
    {.name = "Constraints", .put = [](Out, A) {}, .width = 14},
    {.name = "ConsumedEnergy", .put = [](Out, A) {}, .width = 14},
    {.name = "ConsumedEnergyRaw", .put = [](Out, A) {}, .width = 17},
    {.name = "Container", .put = [](Out, A) {}, .width = 14},
    {.name = "CPUTime",
     .put = [](Out o, A v) { o += format_duration_long(elapsed_of(v) * cpus_of(v)); },
     .width = 10},
    {.name = "CPUTimeRAW",
     .put = [](Out o, A v) { o += std::to_string(elapsed_of(v).seconds() * cpus_of(v)); },
     .width = 10},
    {.name = "DBIndex",
     .put = [](Out o, A v) { put_number(o, v.job->row.job.value()); },
     .width = 10},
    {.name = "DerivedExitCode",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += exit_text(derived_exit(*v.job));
         },
     .width = 15},
    {.name = "Elapsed",
     .put = [](Out o, A v) { o += format_duration_long(elapsed_of(v)); },
     .width = 10},
    {.name = "ElapsedRaw",
     .put = [](Out o, A v) { o += std::to_string(elapsed_of(v).seconds()); },
     .width = 10},
    {.name = "Eligible",
     .put = [](Out o,
               A v) { o += shown_time(v.step != nullptr ? v.step->started : v.job->row.eligible); },
     .width = 19},
    {.name = "End",
     .put =
         [](Out o, A v) {
           o += shown_time(v.step != nullptr ? v.step->ended : v.job->row.ended, "Unknown");
         },
     .width = 19},
    {.name = "ExitCode", .put = [](Out o, A v) { o += exit_text(shown_exit(v)); }, .width = 8},
    {.name = "Extra", .put = [](Out, A) {}, .width = 14},
    {.name = "FailedNode", .put = [](Out, A) {}, .width = 20},
    {.name = "Flags", .put = [](Out, A) {}, .width = 20},
    {.name = "GID", .put = put_gid, .width = 6},
    {.name = "Group", .put = put_group, .width = 9},
    {.name = "JobID",
     .put = [](Out o, A v) { o += shown_id(v.job->row) + step_suffix(v); },
     .width = -12},
    {.name = "JobIDRaw",
     .put = [](Out o, A v) { o += std::to_string(v.job->row.job.value()) + step_suffix(v); },
     .width = -12},
    {.name = "JobName",
     .put = [](Out o, A v) { o += v.step != nullptr ? v.step->name : v.job->row.name; },
     .width = 10},
    {.name = "Layout",
     .put =
         [](Out o, A v) {
           if (v.step != nullptr)
             o += v.step->step == "batch" || v.step->step == "extern" ? "Unknown" : "Block";
         },
     .width = 9},
    {.name = "Licenses",
     .put = [](Out o, A v) { o += v.step == nullptr ? v.job->licenses : ""; },
     .width = 10},
    {.name = "MaxDiskRead",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_read_bytes); },
     .width = 12},
    {.name = "MaxDiskReadNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 15},
    {.name = "MaxDiskReadTask",
     .put =
         [](Out o, A v) {
           if (v.step != nullptr) o += "0";
         },
     .width = 15},
    {.name = "MaxDiskWrite",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_write_bytes); },
     .width = 12},
    {.name = "MaxDiskWriteNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 16},
    {.name = "MaxDiskWriteTask",
     .put =
         [](Out o, A v) {
           if (v.step != nullptr) o += "0";
         },
     .width = 16},
    {.name = "MaxPages", .put = [](Out, A) {}, .width = 8},
    {.name = "MaxPagesNode", .put = [](Out, A) {}, .width = 12},
    {.name = "MaxPagesTask", .put = [](Out, A) {}, .width = 14},
    {.name = "MaxRSS",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).memory_peak_bytes); },
     .width = 10},
    {.name = "MaxRSSNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 10},
    {.name = "MaxRSSTask",
     .put =
         [](Out o, A v) {
           if (v.step != nullptr) o += "0";
         },
     .width = 10},
    {.name = "MaxVMSize", .put = [](Out, A) {}, .width = 10},
    {.name = "MaxVMSizeNode", .put = [](Out, A) {}, .width = 14},
    {.name = "MaxVMSizeTask", .put = [](Out, A) {}, .width = 14},
    {.name = "McsLabel", .put = [](Out, A) {}, .width = 10},
    {.name = "MinCPU", .put = [](Out, A) {}, .width = 10},
    {.name = "MinCPUNode", .put = [](Out, A) {}, .width = 10},
    {.name = "MinCPUTask", .put = [](Out, A) {}, .width = 10},
    {.name = "NCPUS", .put = [](Out o, A v) { put_number(o, cpus_of(v)); }, .width = 10},
    {.name = "NNodes", .put = [](Out o, A v) { put_number(o, nodes_of(v)); }, .width = 8},
    {.name = "NodeList", .put = put_node_list, .width = 15},
    {.name = "NTasks",
     .put =
         [](Out o, A v) {
           if (v.step != nullptr) put_number(o, v.step->tasks);
         },
     .width = 8},
    {.name = "Partition",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->row.partition;
         },
     .width = 10},
    {.name = "Planned",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += format_duration_long(waited_of(v));
         },
     .width = 10},
    {.name = "PlannedCPU",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += format_duration_long(waited_of(v) * v.job->row.cpus);
         },
     .width = 10},
    {.name = "PlannedCPURAW",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += std::to_string(waited_of(v).seconds() * v.job->row.cpus);
         },
     .width = 13},
    {.name = "Priority",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += std::to_string(v.job->row.priority);
         },
     .width = 10},
    {.name = "QOS",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += priority_class_of(*v.job);
         },
     .width = 10},
    {.name = "QOSRAW", .put = [](Out, A) {}, .width = 10},
    {.name = "QOSREQ", .put = [](Out, A) {}, .width = 10},
    {.name = "Reason",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += reason_of(v.job->row);
         },
     .width = 22},
    {.name = "ReqCPUFreq", .put = [](Out, A) {}, .width = 10},
    {.name = "ReqCPUFreqGov", .put = [](Out, A) {}, .width = 13},
    {.name = "ReqCPUFreqMax", .put = [](Out, A) {}, .width = 13},
    {.name = "ReqCPUFreqMin", .put = [](Out, A) {}, .width = 13},
    {.name = "ReqCPUS",
     .put = [](Out o, A v) { put_number(o, v.step != nullptr ? v.step->cpus : v.job->row.cpus); },
     .width = 8},
    {.name = "ReqMem",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) put_size(o, v, v.job->row.memory_per_node * v.job->row.nodes);
         },
     .width = 10},
    {.name = "ReqNodes", .put = [](Out o, A v) { put_number(o, nodes_of(v)); }, .width = 8},
    {.name = "ReqReserv",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->row.reservation;
         },
     .width = 14},
    {.name = "ReqTRES",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) put_req_tres(o, v);
         },
     .width = 10},
    {.name = "Reservation",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->row.reservation;
         },
     .width = 20},
    {.name = "ReservationId", .put = [](Out, A) {}, .width = 13},
    {.name = "Reserved",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += format_duration_long(waited_of(v));
         },
     .width = 10},
    {.name = "ResvCPU",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += format_duration_long(waited_of(v) * v.job->row.cpus);
         },
     .width = 10},
    {.name = "ResvCPURAW",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += std::to_string(waited_of(v).seconds() * v.job->row.cpus);
         },
     .width = 10},
    {.name = "Restarts",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) put_number(o, v.job->row.restarts);
         },
     .width = 8},
    {.name = "Start",
     .put =
         [](Out o, A v) {
           const bool over = v.job->row.phase == Phase::ended;
           o += shown_time(v.step != nullptr ? v.step->started : v.job->row.started,
                           over ? "None" : "Unknown");
         },
     .width = 19},
    {.name = "State", .put = [](Out o, A v) { o += state_with_canceller(v); }, .width = 10},
    {.name = "StdErr", .put = [](Out, A) {}, .width = 14},
    {.name = "StdIn", .put = [](Out, A) {}, .width = 14},
    {.name = "StdOut", .put = [](Out, A) {}, .width = 14},
    {.name = "Submit",
     .put =
         [](Out o, A v) {
           o += shown_time(v.step != nullptr ? v.step->started : v.job->row.submitted);
         },
     .width = 19},
    {.name = "SubmitLine",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->submit_line;
         },
     .width = 20},
    {.name = "Suspended",
     .put = [](Out o, A v) { o += format_duration_long(v.job->row.suspended); },
     .width = 10},
    {.name = "SystemComment", .put = [](Out, A) {}, .width = 14},
    {.name = "SystemCPU",
     .put = [](Out o, A v) { o += cpu_time(usage_of(v).cpu_system_us); },
     .width = 10},
    {.name = "Timelimit",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr)
             o +=
                 v.job->row.time_limit ? format_duration_long(*v.job->row.time_limit) : "UNLIMITED";
         },
     .width = 10},
    {.name = "TimelimitRaw",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr)
             o += v.job->row.time_limit ? std::to_string(v.job->row.time_limit->seconds() / 60)
                                        : "UNLIMITED";
         },
     .width = 12},
    {.name = "TotalCPU",
     .put = [](Out o, A v) { o += cpu_time(usage_of(v).cpu_user_us + usage_of(v).cpu_system_us); },
     .width = 10},
    {.name = "TRESUsageInAve", .put = [](Out o, A v) { put_usage_in(o, v); }, .width = 15},
    {.name = "TRESUsageInMax", .put = [](Out o, A v) { put_usage_in(o, v); }, .width = 15},
    {.name = "TRESUsageInMaxNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 18},
    {.name = "TRESUsageInMaxTask", .put = [](Out, A) {}, .width = 18},
    {.name = "TRESUsageInMin", .put = [](Out o, A v) { put_usage_in(o, v); }, .width = 14},
    {.name = "TRESUsageInMinNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 18},
    {.name = "TRESUsageInMinTask", .put = [](Out, A) {}, .width = 18},
    {.name = "TRESUsageInTot", .put = [](Out o, A v) { put_usage_in(o, v); }, .width = 14},
    {.name = "TRESUsageOutAve", .put = [](Out o, A v) { put_usage_out(o, v); }, .width = 15},
    {.name = "TRESUsageOutMax", .put = [](Out o, A v) { put_usage_out(o, v); }, .width = 15},
    {.name = "TRESUsageOutMaxNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 19},
    {.name = "TRESUsageOutMaxTask", .put = [](Out, A) {}, .width = 19},
    {.name = "TRESUsageOutMin", .put = [](Out o, A v) { put_usage_out(o, v); }, .width = 15},
    {.name = "TRESUsageOutMinNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 19},
    {.name = "TRESUsageOutMinTask", .put = [](Out, A) {}, .width = 19},
    {.name = "TRESUsageOutTot", .put = [](Out o, A v) { put_usage_out(o, v); }, .width = 15},
    {.name = "UID",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) put_number(o, v.job->row.uid.value());
         },
     .width = 6},
    {.name = "User",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->row.user;
         },
     .width = 9},
    {.name = "UserCPU",
     .put = [](Out o, A v) { o += cpu_time(usage_of(v).cpu_user_us); },
     .width = 10},
    {.name = "WCKey",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->wckey;
         },
     .width = 10},
    {.name = "WCKeyID", .put = [](Out, A) {}, .width = 8},
    {.name = "WorkDir",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->work_dir;
         },
     .width = 20},
};

}  // namespace

std::span<const Field<AccountRow>> account_fields() {
  return kAccountFields;
}

}  // namespace gantry::cli::slurm
