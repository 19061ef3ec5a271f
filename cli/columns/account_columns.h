// Columns of gacct: jobs and their steps.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "cli/table.h"
#include "common/proto/history.h"

namespace gantry::cli {

struct AccountView {
  const proto::HistoryRow* job = nullptr;
  const proto::StepRow* step = nullptr;  // not set: the line of the job itself
  Instant now{};
  bool bytes = false;  // --noconvert: sizes in bytes
};

std::span<const Column<AccountView>> account_columns();

inline constexpr std::string_view kAccountFields =
    "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
inline constexpr std::string_view kAccountBriefFields = "JobID,State,ExitCode";
inline constexpr std::string_view kAccountLongFields =
    "JobID,JobName,User,Partition,NNodes,AllocCPUS,ReqMem,State,ExitCode,Submit,Start,End,"
    "Elapsed,Timelimit,TotalCPU,MaxRSS,MaxDiskRead,MaxDiskWrite,NodeList%-20";
// The first is what fits 80 columns, the second has all that is measured.
inline constexpr std::string_view kAccountEfficiencyFields =
    "JobID,State,Elapsed,CPUEff,MemEff,AllocGPUS,GPUEff,GPUMemEff";
inline constexpr std::string_view kAccountAllEfficiencyFields =
    "JobID,JobName,State,Elapsed,CPUEff,MemEff,AllocGPUS,GPUEff,GPUMem,GPUMemEff,GPUPower,"
    "GPUEnergy,"
    "GPUIdle";

// Values of jobs and their steps that gacct and sacct show in the same way, as node_values.h has
// them for nodes. Of the two arguments, `step` is not set on the line of the job itself.

using HistoryRow = proto::HistoryRow;
using StepRow = proto::StepRow;
using JobRow = proto::JobRow;

const Usage& usage_of(const HistoryRow& job, const StepRow* step);
// Cores that the job or the step has or had. A job that has never had nodes has none.
std::uint32_t cores_held(const HistoryRow& job, const StepRow* step);
// Processor time as sacct writes it: "00:00.123", "01:02:03", "2-01:00:00".
std::string cpu_time(std::int64_t us);
// " by UID" for an ended job that a person cancelled, as sacct adds it to the state; else "".
std::string canceller_of(const HistoryRow& job);

std::string account_of(const HistoryRow& job, const StepRow* step);
std::string cores_held_text(const HistoryRow& job, const StepRow* step);
std::string cores_asked(const HistoryRow& job, const StepRow* step);
std::string line_id(const HistoryRow& job, const StepRow* step);      // "12_3", "12_3.batch"
std::string raw_line_id(const HistoryRow& job, const StepRow* step);  // "15", "15.batch"
std::string line_name(const HistoryRow& job, const StepRow* step);
std::string task_number(const HistoryRow& job, const StepRow* step);  // "" for the job itself
std::string total_cpu(const HistoryRow& job, const StepRow* step);
std::string user_cpu(const HistoryRow& job, const StepRow* step);
std::string system_cpu(const HistoryRow& job, const StepRow* step);
// Only the line of the job itself has these.
std::string reason_of_line(const HistoryRow& job);
std::string limit_of(const HistoryRow& job);          // "01:00:00", "UNLIMITED"
std::string limit_in_minutes(const HistoryRow& job);  // "60", "UNLIMITED"
std::string uid_of(const HistoryRow& job);

template <class View, auto Get>
void put_line(std::string& out, const View& v) {
  out += Get(*v.job, v.step);
}
template <class View, auto Get>
void put_of_job(std::string& out, const View& v) {
  if (v.step == nullptr) out += std::invoke(Get, *v.job);
}
template <class View, auto Member>  // a text or a number of the job's row
void put_of_row(std::string& out, const View& v) {
  if (v.step == nullptr) fmt::format_to(std::back_inserter(out), "{}", v.job->row.*Member);
}

// The list of values. A view has the line's `job` and `step`.
template <class View>
inline constexpr Column<View> kAccountValues[] = {
    sized("Account", 10, put_line<View, account_of>),
    sized("AllocCPUS", 10, put_line<View, cores_held_text>),
    sized("Comment", 14, put_of_job<View, &HistoryRow::comment>),
    sized("JobID", -12, put_line<View, line_id>),
    sized("JobIDRaw", -12, put_line<View, raw_line_id>),
    sized("JobName", 10, put_line<View, line_name>),
    sized("NCPUS", 10, put_line<View, cores_held_text>),
    sized("NTasks", 8, put_line<View, task_number>),
    sized("Partition", 10, put_of_row<View, &JobRow::partition>),
    sized("Priority", 10, put_of_row<View, &JobRow::priority>),
    sized("Reason", 22, put_of_job<View, reason_of_line>),
    sized("ReqCPUS", 8, put_line<View, cores_asked>),
    sized("Restarts", 8, put_of_row<View, &JobRow::restarts>),
    sized("SubmitLine", 20, put_of_job<View, &HistoryRow::submit_line>),
    sized("SystemCPU", 10, put_line<View, system_cpu>),
    sized("Timelimit", 10, put_of_job<View, limit_of>),
    sized("TimelimitRaw", 12, put_of_job<View, limit_in_minutes>),
    sized("TotalCPU", 10, put_line<View, total_cpu>),
    sized("UID", 6, put_of_job<View, uid_of>),
    sized("User", 9, put_of_row<View, &JobRow::user>),
    sized("UserCPU", 10, put_line<View, user_cpu>),
    sized("WorkDir", 20, put_of_job<View, &HistoryRow::work_dir>),
};

// The column with this name. A name that is not in the list does not compile.
template <class View>
consteval Column<View> account_value(std::string_view name) {
  for (const Column<View>& v : kAccountValues<View>)
    if (v.name == name) return v;
  throw "no value of a line of accounting has this name";
}

}  // namespace gantry::cli
