// The table of sacct's fields and the code that computes them.
#include "cli/slurm/records/account_fields.h"

#include <fmt/core.h>

#include "cli/columns/account_columns.h"
#include "cli/columns/job_words.h"
#include "cli/slurm/records/history.h"
#include "cli/slurm/records/job_json.h"
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

// The usage of single tasks is not known, so task 0 has that of the step.
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

consteval Column<AccountRow> shared_line(std::string_view name) {
  return account_value<AccountRow>(name);
}

constexpr Column<AccountRow> kAccountFields[] = {
    shared_line("Account"),
    sized("AdminComment", 19,
          [](Out o, A v) {
            if (v.step == nullptr) o += v.job->admin_comment;
          }),
    shared_line("AllocCPUS"),
    sized("AllocNodes", 10,
          [](Out o, A v) { put_number(o, v.job->row.node_list.empty() ? 0 : nodes_of(v)); }),
    sized("AllocTRES", 10, [](Out o, A v) { put_alloc_tres(o, v); }),
    sized("AssocID", 7, [](Out, A) {}),
    sized("AveCPU", 10,
          [](Out o, A v) {
            if (v.step != nullptr && v.step->tasks > 0)
              o += cpu_time((usage_of(v).cpu_user_us + usage_of(v).cpu_system_us) / v.step->tasks);
          }),
    sized("AveCPUFreq", 10, [](Out, A) {}),
    sized("AveDiskRead", 14, [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_read_bytes); }),
    sized("AveDiskWrite", 14, [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_write_bytes); }),
    sized("AvePages", 10, [](Out, A) {}),
    sized("AveRSS", 10, [](Out o, A v) { put_step_bytes(o, v, usage_of(v).memory_peak_bytes); }),
    sized("AveVMSize", 10, [](Out, A) {}),
    sized("BlockID", 16, [](Out, A) {}),
    sized("Cluster", 10, [](Out o, A v) { o += v.cluster; }),
    shared_line("Comment"),
    sized("Constraints", 14, [](Out, A) {}),
    sized("ConsumedEnergy", 14, [](Out, A) {}),
    sized("ConsumedEnergyRaw", 17, [](Out, A) {}),
    sized("Container", 14, [](Out, A) {}),
    sized("CPUTime", 10, [](Out o, A v) { o += format_duration_long(elapsed_of(v) * cpus_of(v)); }),
    sized("CPUTimeRAW", 10,
          [](Out o, A v) { o += std::to_string(elapsed_of(v).seconds() * cpus_of(v)); }),
    sized("DBIndex", 10, [](Out o, A v) { put_number(o, v.job->row.job.value()); }),
    sized("DerivedExitCode", 15,
          [](Out o, A v) {
            if (v.step == nullptr) o += exit_text(derived_exit(*v.job));
          }),
    sized("Elapsed", 10, [](Out o, A v) { o += format_duration_long(elapsed_of(v)); }),
    sized("ElapsedRaw", 10, [](Out o, A v) { o += std::to_string(elapsed_of(v).seconds()); }),
    sized("Eligible", 19,
          [](Out o, A v) {
            o += shown_time(
                v.step != nullptr ? std::optional(v.step->started) : eligible_since(v.job->row),
                "Unknown");
          }),
    sized("End", 19,
          [](Out o, A v) {
            o += shown_time(v.step != nullptr ? v.step->ended : v.job->row.ended, "Unknown");
          }),
    sized("ExitCode", 8, [](Out o, A v) { o += exit_text(shown_exit(v)); }),
    sized("Extra", 14, [](Out, A) {}),
    sized("FailedNode", 20, [](Out, A) {}),
    sized("Flags", 20, [](Out, A) {}),
    sized("GID", 6, put_gid),
    sized("Group", 9, put_group),
    shared_line("JobID"),
    sized("JobIDRaw", -12,
          [](Out o, A v) {
            put_number(o, v.job->row.slurm_id().value());
            if (v.step != nullptr) o += "." + v.step->step;
          }),
    shared_line("JobName"),
    sized("Layout", 9,
          [](Out o, A v) {
            if (v.step != nullptr)
              o += v.step->step == "batch" || v.step->step == "extern" ? "Unknown" : "Block";
          }),
    sized("Licenses", 10, put_of_job<AccountRow, &HistoryRow::licenses>),
    sized("MaxDiskRead", 12, [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_read_bytes); }),
    sized("MaxDiskReadNode", 15, [](Out o, A v) { put_step_node(o, v); }),
    sized("MaxDiskReadTask", 15, put_step_task),
    sized("MaxDiskWrite", 12, [](Out o, A v) { put_step_bytes(o, v, usage_of(v).io_write_bytes); }),
    sized("MaxDiskWriteNode", 16, [](Out o, A v) { put_step_node(o, v); }),
    sized("MaxDiskWriteTask", 16, put_step_task),
    sized("MaxPages", 8, [](Out, A) {}),
    sized("MaxPagesNode", 12, [](Out, A) {}),
    sized("MaxPagesTask", 14, [](Out, A) {}),
    sized("MaxRSS", 10, [](Out o, A v) { put_step_bytes(o, v, usage_of(v).memory_peak_bytes); }),
    sized("MaxRSSNode", 10, [](Out o, A v) { put_step_node(o, v); }),
    sized("MaxRSSTask", 10, put_step_task),
    sized("MaxVMSize", 10, [](Out, A) {}),
    sized("MaxVMSizeNode", 14, [](Out, A) {}),
    sized("MaxVMSizeTask", 14, [](Out, A) {}),
    sized("McsLabel", 10, [](Out, A) {}),
    sized("MinCPU", 10, [](Out, A) {}),
    sized("MinCPUNode", 10, [](Out, A) {}),
    sized("MinCPUTask", 10, [](Out, A) {}),
    shared_line("NCPUS"),
    sized("NNodes", 8, [](Out o, A v) { put_number(o, nodes_of(v)); }),
    sized("NodeList", 15, put_node_list),
    shared_line("NTasks"),
    shared_line("Partition"),
    sized("Planned", 10, put_wait),
    sized("PlannedCPU", 10, put_core_wait),
    sized("PlannedCPURAW", 13, put_core_seconds),
    shared_line("Priority"),
    sized("QOS", 10,
          [](Out o, A v) {
            if (v.step == nullptr) o += priority_class_of(*v.job);
          }),
    sized("QOSRAW", 10, [](Out, A) {}),
    sized("QOSREQ", 10, [](Out, A) {}),
    shared_line("Reason"),
    sized("ReqCPUFreq", 10, [](Out, A) {}),
    sized("ReqCPUFreqGov", 13, [](Out, A) {}),
    sized("ReqCPUFreqMax", 13, [](Out, A) {}),
    sized("ReqCPUFreqMin", 13, [](Out, A) {}),
    shared_line("ReqCPUS"),
    sized("ReqMem", 10,
          [](Out o, A v) {
            if (v.step == nullptr) put_size(o, v, v.job->row.memory_per_node * v.job->row.nodes);
          }),
    sized("ReqNodes", 8, [](Out o, A v) { put_number(o, nodes_of(v)); }),
    sized("ReqReserv", 14, put_of_row<AccountRow, &JobRow::reservation>),
    sized("ReqTRES", 10,
          [](Out o, A v) {
            if (v.step == nullptr) put_req_tres(o, v);
          }),
    sized("Reservation", 20, put_of_row<AccountRow, &JobRow::reservation>),
    sized("ReservationId", 13, [](Out, A) {}),
    sized("Reserved", 10, put_wait),
    sized("ResvCPU", 10, put_core_wait),
    sized("ResvCPURAW", 10, put_core_seconds),
    shared_line("Restarts"),
    sized("Start", 19,
          [](Out o, A v) {
            const bool over = v.job->row.phase == Phase::ended;
            o += shown_time(v.step != nullptr ? v.step->started : v.job->row.started,
                            over ? "None" : "Unknown");
          }),
    sized("State", 10, [](Out o, A v) { o += state_with_canceller(v); }),
    sized("StdErr", 14, [](Out, A) {}),
    sized("StdIn", 14, [](Out, A) {}),
    sized("StdOut", 14, [](Out, A) {}),
    sized("Submit", 19,
          [](Out o, A v) {
            o += shown_time(v.step != nullptr ? v.step->started : v.job->row.submitted);
          }),
    shared_line("SubmitLine"),
    sized("Suspended", 10, [](Out o, A v) { o += format_duration_long(v.job->row.suspended); }),
    sized("SystemComment", 14,
          [](Out o, A v) {
            if (v.step == nullptr) o += v.job->system_comment;
          }),
    shared_line("SystemCPU"),
    shared_line("Timelimit"),
    shared_line("TimelimitRaw"),
    shared_line("TotalCPU"),
    sized("TRESUsageInAve", 15, [](Out o, A v) { put_usage_in(o, v); }),
    sized("TRESUsageInMax", 15, [](Out o, A v) { put_usage_in(o, v); }),
    sized("TRESUsageInMaxNode", 18, [](Out o, A v) { put_step_node(o, v); }),
    sized("TRESUsageInMaxTask", 18, [](Out, A) {}),
    sized("TRESUsageInMin", 14, [](Out o, A v) { put_usage_in(o, v); }),
    sized("TRESUsageInMinNode", 18, [](Out o, A v) { put_step_node(o, v); }),
    sized("TRESUsageInMinTask", 18, [](Out, A) {}),
    sized("TRESUsageInTot", 14, [](Out o, A v) { put_usage_in(o, v); }),
    sized("TRESUsageOutAve", 15, [](Out o, A v) { put_usage_out(o, v); }),
    sized("TRESUsageOutMax", 15, [](Out o, A v) { put_usage_out(o, v); }),
    sized("TRESUsageOutMaxNode", 19, [](Out o, A v) { put_step_node(o, v); }),
    sized("TRESUsageOutMaxTask", 19, [](Out, A) {}),
    sized("TRESUsageOutMin", 15, [](Out o, A v) { put_usage_out(o, v); }),
    sized("TRESUsageOutMinNode", 19, [](Out o, A v) { put_step_node(o, v); }),
    sized("TRESUsageOutMinTask", 19, [](Out, A) {}),
    sized("TRESUsageOutTot", 15, [](Out o, A v) { put_usage_out(o, v); }),
    shared_line("UID"),
    shared_line("User"),
    shared_line("UserCPU"),
    sized("WCKey", 10, put_of_job<AccountRow, &HistoryRow::wckey>),
    sized("WCKeyID", 8, [](Out, A) {}),
    shared_line("WorkDir"),
};

}  // namespace

std::span<const Column<AccountRow>> account_fields() {
  return kAccountFields;
}

}  // namespace gantry::cli::slurm
