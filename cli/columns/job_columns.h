// Columns of the job queue.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <string_view>

#include "cli/columns/job_words.h"
#include "cli/table.h"
#include "common/proto/job_query.h"
#include "common/text/text.h"

namespace gantry::cli {

struct JobView {
  const proto::JobRow* row = nullptr;
  Instant now{};  // cluster time when the listing was made
};

inline const proto::JobRow& row_of(const JobView& view) {
  return *view.row;
}

std::span<const Column<JobView>> job_columns();

inline constexpr std::string_view kQueueFormat = "%.10i %.9P %.8j %.8u %.2t %.10M %.6D %R";
inline constexpr std::string_view kQueueLongFormat = "%.10i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
inline constexpr std::string_view kQueueStartFormat = "%.10i %.9P %.8j %.8u %.2t %.19S %.6D %R";
inline constexpr std::string_view kQueueCostFormat =
    "%.10i %.9P %.8j %.8u %.2t %.10M %.6D %.6b %.10X %.12x";
inline constexpr std::string_view kQueueWhyFormat = "%.10i %.9P %.8u %.19S %w";

// Values of a job that gqueue and squeue show in the same way. The letter, the name, the header and
// the code that writes the value are defined once, here. Each family of commands places these
// columns in its own table, and adds columns that only it has or that it shows differently.

inline void put_number(std::string& out, std::uint64_t n) {
  std::array<char, 20> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr);
}
inline void text_or(std::string& out, std::string_view text, std::string_view none) {
  out += text.empty() ? none : text;
}
// Writes the number of the task, or the numbers of all tasks that the row stands for.
inline void put_task(std::string& out, const proto::JobRow& row) {
  if (row.array_task)
    put_number(out, *row.array_task);
  else
    text_or(out, row.array_tasks, "N/A");
}

// The list of values. A view
// has the time of the listing as `now`, and row_of(view) is the job's row.
template <class View>
inline constexpr Column<View> kJobValues[] = {
    {'a', "Account", "ACCOUNT",
     [](Out o, const View& v) { text_or(o, row_of(v).account, "(null)"); }},
    {'F', "ArrayJobID", "ARRAY_JOB_ID",
     [](Out o, const View& v) {
       const proto::JobRow& row = row_of(v);
       put_number(o, row.array_job.value() != 0 ? row.array_job.value() : row.job.value());
     }},
    {'K', "ArrayTaskID", "ARRAY_TASK_ID", [](Out o, const View& v) { put_task(o, row_of(v)); }},
    {'B', "BatchHost", "EXEC_HOST",
     [](std::string& o, const View& v) { text_or(o, first_node_of(row_of(v).node_list), "n/a"); }},
    {'j', "Name", "NAME", [](Out o, const View& v) { o += row_of(v).name; }},
    {'N', "NodeList", "NODELIST", [](Out o, const View& v) { o += row_of(v).node_list; }},
    {'C', "NumCPUs", "CPUS", [](Out o, const View& v) { put_number(o, row_of(v).cpus); }},
    {'D', "NumNodes", "NODES", [](Out o, const View& v) { put_number(o, row_of(v).nodes); }},
    {'P', "Partition", "PARTITION", [](Out o, const View& v) { o += row_of(v).partition; }},
    {'r', "Reason", "REASON", [](Out o, const View& v) { o += reason_of(row_of(v)); }},
    {'v', "Reservation", "RESERVATION",
     [](Out o, const View& v) { text_or(o, row_of(v).reservation, "(null)"); }},
    {'T', "State", "STATE", [](Out o, const View& v) { o += words_of(row_of(v)).state; }},
    {'t', "StateCompact", "ST", [](Out o, const View& v) { o += words_of(row_of(v)).compact; }},
    {'l', "TimeLimit", "TIME_LIMIT",
     [](Out o, const View& v) { o += format_time_limit(row_of(v).time_limit); }},
    {'M', "TimeUsed", "TIME",
     [](std::string& o, const View& v) { o += format_duration(run_time(row_of(v), v.now)); }},
    {'U', "UserID", "UID", [](Out o, const View& v) { put_number(o, row_of(v).uid.value()); }},
    {'u', "UserName", "USER", [](Out o, const View& v) { o += row_of(v).user; }}};

// The value with this name. A name that is not in the list does not compile.
template <class View>
consteval Column<View> job_value(std::string_view name) {
  for (const Column<View>& cell : kJobValues<View>)
    if (cell.name == name) return cell;
  throw "no value of a job has this name";
}

}  // namespace gantry::cli
