// The table of sacct's fields and the code that computes them.
#include "cli/slurm/records/account_fields.h"

#include <fmt/core.h>

#include "cli/columns/account_values.h"
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
  return cli::usage_of(*v.job, v.step);
}

// The time from submit until the start. If the job has not started, it lasts until now or until the
// job's end.
Duration waited_of(A v) {
  const proto::JobRow& row = v.job->row;
  return std::max(row.started.value_or(row.ended.value_or(v.now)) - row.submitted, Duration{});
}

void put_wait(Out o, A v) {
  if (v.step == nullptr) o += format_duration_long(waited_of(v));
}
void put_core_wait(Out o, A v) {
  if (v.step == nullptr) o += format_duration_long(waited_of(v) * v.job->row.cpus);
}
void put_core_seconds(Out o, A v) {
  if (v.step == nullptr) o += std::to_string(waited_of(v).seconds() * v.job->row.cpus);
}

ExitStatus derived_exit(const proto::HistoryRow& job) {
  if (job.derived_exit) return *job.derived_exit;
  ExitStatus worst;
  for (const proto::StepRow& step : job.steps)
    if (step.step != "batch" && step.step != "extern" &&
        std::pair(step.exit.code, step.exit.signal) > std::pair(worst.code, worst.signal))
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

// Usage is known of the step as a whole, so its task 0 stands for all.
void put_step_task(Out o, A v) {
  if (v.step != nullptr) o += "0";
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

consteval Field<AccountRow> shared_line(std::string_view name) {
  return account_value<Field<AccountRow>, AccountRow>(name);
}

constexpr Field<AccountRow> kAccountFields[] = {
    shared_line("Account"),
    {.name = "AdminComment",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->admin_comment;
         },
     .width = 19},
    shared_line("AllocCPUS"),
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
    shared_line("Comment"),
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
     .put =
         [](Out o, A v) {
           o += shown_time(
               v.step != nullptr ? std::optional(v.step->started) : eligible_since(v.job->row),
               "Unknown");
         },
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
    shared_line("JobID"),
    {.name = "JobIDRaw",
     .put =
         [](Out o, A v) {
           put_number(o, v.job->row.slurm_id().value());
           if (v.step != nullptr) o += "." + v.step->step;
         },
     .width = -12},
    shared_line("JobName"),
    {.name = "Layout",
     .put =
         [](Out o, A v) {
           if (v.step != nullptr)
             o += v.step->step == "batch" || v.step->step == "extern" ? "Unknown" : "Block";
         },
     .width = 9},
    {.name = "Licenses", .put = put_of_job<AccountRow, &HistoryRow::licenses>, .width = 10},
    {.name = "MaxDiskRead",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_read_bytes); },
     .width = 12},
    {.name = "MaxDiskReadNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 15},
    {.name = "MaxDiskReadTask", .put = put_step_task, .width = 15},
    {.name = "MaxDiskWrite",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_write_bytes); },
     .width = 12},
    {.name = "MaxDiskWriteNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 16},
    {.name = "MaxDiskWriteTask", .put = put_step_task, .width = 16},
    {.name = "MaxPages", .put = [](Out, A) {}, .width = 8},
    {.name = "MaxPagesNode", .put = [](Out, A) {}, .width = 12},
    {.name = "MaxPagesTask", .put = [](Out, A) {}, .width = 14},
    {.name = "MaxRSS",
     .put = [](Out o, A v) { put_step_bytes(o, v, usage_of(v).memory_peak_bytes); },
     .width = 10},
    {.name = "MaxRSSNode", .put = [](Out o, A v) { put_step_node(o, v); }, .width = 10},
    {.name = "MaxRSSTask", .put = put_step_task, .width = 10},
    {.name = "MaxVMSize", .put = [](Out, A) {}, .width = 10},
    {.name = "MaxVMSizeNode", .put = [](Out, A) {}, .width = 14},
    {.name = "MaxVMSizeTask", .put = [](Out, A) {}, .width = 14},
    {.name = "McsLabel", .put = [](Out, A) {}, .width = 10},
    {.name = "MinCPU", .put = [](Out, A) {}, .width = 10},
    {.name = "MinCPUNode", .put = [](Out, A) {}, .width = 10},
    {.name = "MinCPUTask", .put = [](Out, A) {}, .width = 10},
    shared_line("NCPUS"),
    {.name = "NNodes", .put = [](Out o, A v) { put_number(o, nodes_of(v)); }, .width = 8},
    {.name = "NodeList", .put = put_node_list, .width = 15},
    shared_line("NTasks"),
    shared_line("Partition"),
    {.name = "Planned", .put = put_wait, .width = 10},
    {.name = "PlannedCPU", .put = put_core_wait, .width = 10},
    {.name = "PlannedCPURAW", .put = put_core_seconds, .width = 13},
    shared_line("Priority"),
    {.name = "QOS",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += priority_class_of(*v.job);
         },
     .width = 10},
    {.name = "QOSRAW", .put = [](Out, A) {}, .width = 10},
    {.name = "QOSREQ", .put = [](Out, A) {}, .width = 10},
    shared_line("Reason"),
    {.name = "ReqCPUFreq", .put = [](Out, A) {}, .width = 10},
    {.name = "ReqCPUFreqGov", .put = [](Out, A) {}, .width = 13},
    {.name = "ReqCPUFreqMax", .put = [](Out, A) {}, .width = 13},
    {.name = "ReqCPUFreqMin", .put = [](Out, A) {}, .width = 13},
    shared_line("ReqCPUS"),
    {.name = "ReqMem",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) put_size(o, v, v.job->row.memory_per_node * v.job->row.nodes);
         },
     .width = 10},
    {.name = "ReqNodes", .put = [](Out o, A v) { put_number(o, nodes_of(v)); }, .width = 8},
    {.name = "ReqReserv", .put = put_of_row<AccountRow, &JobRow::reservation>, .width = 14},
    {.name = "ReqTRES",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) put_req_tres(o, v);
         },
     .width = 10},
    {.name = "Reservation", .put = put_of_row<AccountRow, &JobRow::reservation>, .width = 20},
    {.name = "ReservationId", .put = [](Out, A) {}, .width = 13},
    {.name = "Reserved", .put = put_wait, .width = 10},
    {.name = "ResvCPU", .put = put_core_wait, .width = 10},
    {.name = "ResvCPURAW", .put = put_core_seconds, .width = 10},
    shared_line("Restarts"),
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
    shared_line("SubmitLine"),
    {.name = "Suspended",
     .put = [](Out o, A v) { o += format_duration_long(v.job->row.suspended); },
     .width = 10},
    {.name = "SystemComment",
     .put =
         [](Out o, A v) {
           if (v.step == nullptr) o += v.job->system_comment;
         },
     .width = 14},
    shared_line("SystemCPU"),
    shared_line("Timelimit"),
    shared_line("TimelimitRaw"),
    shared_line("TotalCPU"),
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
    shared_line("UID"),
    shared_line("User"),
    shared_line("UserCPU"),
    {.name = "WCKey", .put = put_of_job<AccountRow, &HistoryRow::wckey>, .width = 10},
    {.name = "WCKeyID", .put = [](Out, A) {}, .width = 8},
    shared_line("WorkDir"),
};

}  // namespace

std::span<const Field<AccountRow>> account_fields() {
  return kAccountFields;
}

}  // namespace gantry::cli::slurm
