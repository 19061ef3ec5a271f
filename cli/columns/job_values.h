// Values of a job that gqueue and squeue show in the same way. The letter, the name, the header and
// the code that writes the value are defined once, here. Each family of commands places these
// columns in its own table, and adds columns that it alone has or shows differently.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "cli/columns/job_words.h"
#include "common/text/text.h"

namespace gantry::cli {

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

// The list of values. `Cell` is a column of tables of `View`: Column<JobView> or Field<QueueRow>. A
// view has the time of the listing as `now`, and row_of(view) is the job's row.
template <class Cell, class View>
inline constexpr Cell kJobValues[] = {
    {.letter = 'a',
     .name = "Account",
     .header = "ACCOUNT",
     .put = [](std::string& o, const View& v) { text_or(o, row_of(v).account, "(null)"); }},
    {.letter = 'F',
     .name = "ArrayJobID",
     .header = "ARRAY_JOB_ID",
     .put =
         [](std::string& o, const View& v) {
           const proto::JobRow& row = row_of(v);
           put_number(o, row.array_job.value() != 0 ? row.array_job.value() : row.job.value());
         }},
    {.letter = 'K',
     .name = "ArrayTaskID",
     .header = "ARRAY_TASK_ID",
     .put = [](std::string& o, const View& v) { put_task(o, row_of(v)); }},
    {.letter = 'B',
     .name = "BatchHost",
     .header = "EXEC_HOST",
     .put = [](std::string& o,
               const View& v) { text_or(o, first_node_of(row_of(v).node_list), "n/a"); }},
    {.letter = 'j',
     .name = "Name",
     .header = "NAME",
     .put = [](std::string& o, const View& v) { o += row_of(v).name; }},
    {.letter = 'N',
     .name = "NodeList",
     .header = "NODELIST",
     .put = [](std::string& o, const View& v) { o += row_of(v).node_list; }},
    {.letter = 'C',
     .name = "NumCPUs",
     .header = "CPUS",
     .put = [](std::string& o, const View& v) { put_number(o, row_of(v).cpus); }},
    {.letter = 'D',
     .name = "NumNodes",
     .header = "NODES",
     .put = [](std::string& o, const View& v) { put_number(o, row_of(v).nodes); }},
    {.letter = 'P',
     .name = "Partition",
     .header = "PARTITION",
     .put = [](std::string& o, const View& v) { o += row_of(v).partition; }},
    {.letter = 'r',
     .name = "Reason",
     .header = "REASON",
     .put = [](std::string& o, const View& v) { o += reason_of(row_of(v)); }},
    {.letter = 'v',
     .name = "Reservation",
     .header = "RESERVATION",
     .put = [](std::string& o, const View& v) { text_or(o, row_of(v).reservation, "(null)"); }},
    {.letter = 'T',
     .name = "State",
     .header = "STATE",
     .put = [](std::string& o, const View& v) { o += words_of(row_of(v)).state; }},
    {.letter = 't',
     .name = "StateCompact",
     .header = "ST",
     .put = [](std::string& o, const View& v) { o += words_of(row_of(v)).compact; }},
    {.letter = 'l',
     .name = "TimeLimit",
     .header = "TIME_LIMIT",
     .put = [](std::string& o, const View& v) { o += format_time_limit(row_of(v).time_limit); }},
    {.letter = 'M',
     .name = "TimeUsed",
     .header = "TIME",
     .put = [](std::string& o,
               const View& v) { o += format_duration(run_time(row_of(v), v.now)); }},
    {.letter = 'U',
     .name = "UserID",
     .header = "UID",
     .put = [](std::string& o, const View& v) { put_number(o, row_of(v).uid.value()); }},
    {.letter = 'u',
     .name = "UserName",
     .header = "USER",
     .put = [](std::string& o, const View& v) { o += row_of(v).user; }},
};

// The value with this name. A name that is not in the list does not compile.
template <class Cell, class View>
consteval Cell job_value(std::string_view name) {
  for (const Cell& cell : kJobValues<Cell, View>)
    if (cell.name == name) return cell;
  throw "no value of a job has this name";
}

}  // namespace gantry::cli
