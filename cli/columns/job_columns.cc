// The columns with Slurm's letters and headers. Empty values are shown as squeue shows them.
#include "cli/columns/job_columns.h"

#include "cli/columns/job_values.h"
#include "common/job/verdict_text.h"

namespace gantry::cli {

namespace squeue_cells {
namespace {

void time_or_none(std::string& out, const std::optional<Instant>& t) {
  out += t ? format_time(*t) : "N/A";
}

Duration used(const JobView& v) {
  return run_time(*v.row, v.now);
}

Colour state_colour(const JobView& v) {
  switch (v.row->phase) {
    case Phase::queued: return Colour::yellow;
    case Phase::starting:
    case Phase::suspended:
    case Phase::finishing: return Colour::cyan;
    case Phase::running: return Colour::green;
    case Phase::ended: return v.row->outcome == Outcome::completed ? Colour::grey : Colour::red;
  }
  return Colour::none;
}

consteval Column<JobView> same(std::string_view name) {
  return job_value<Column<JobView>, JobView>(name);
}
consteval Column<JobView> coloured(Column<JobView> column) {
  column.colour = state_colour;
  return column;
}

using O = std::string&;
using V = const JobView&;

constexpr Column<JobView> kColumns[] = {
    {.letter = 'i',
     .name = "JobID",
     .header = "JOBID",
     .put = [](O o, V v) { o += shown_id(*v.row); }},
    {.letter = 'A',
     .name = "JobIDRaw",
     .header = "JOBID",
     .put = [](O o, V v) { put_number(o, v.row->job.value()); }},
    same("ArrayJobID"),
    same("ArrayTaskID"),
    same("Name"),
    coloured(same("StateCompact")),
    coloured(same("State")),
    same("TimeUsed"),
    {.letter = 'L',
     .name = "TimeLeft",
     .header = "TIME_LEFT",
     .put =
         [](O o, V v) {
           if (!v.row->time_limit)
             o += "UNLIMITED";
           else
             o += format_duration(std::max(*v.row->time_limit - used(v), Duration{}));
         }},
    same("TimeLimit"),
    same("NumNodes"),
    same("NumCPUs"),
    {.letter = 'm',
     .name = "MinMemory",
     .header = "MIN_MEMORY",
     .put =
         [](O o, V v) {
           o += v.row->memory_per_node == 0 ? "0" : format_memory(v.row->memory_per_node);
         }},
    {.letter = 'R',
     .name = "ReasonList",
     .header = "NODELIST(REASON)",
     .put = [](O o, V v) { o += where_or_why(*v.row); }},
    same("Reason"),
    {.letter = 'w',
     .name = "Why",
     .header = "WHY",
     .put =
         [](O o, V v) {
           o += v.row->phase == Phase::queued ? describe_verdict(v.row->verdict, v.now)
                                              : where_or_why(*v.row);
         }},
    same("Reservation"),
    {.letter = 'b',
     .name = "NumGPUs",
     .header = "GPUS",
     .put = [](O o, V v) { o += gpus_text(*v.row); }},
    same("NodeList"),
    same("BatchHost"),
    same("Partition"),
    same("UserName"),
    same("UserID"),
    same("Account"),
    {.letter = 'S',
     .name = "StartTime",
     .header = "START_TIME",
     .put = [](O o,
               V v) { time_or_none(o, v.row->started ? v.row->started : v.row->expected_start); }},
    {.letter = 'V',
     .name = "SubmitTime",
     .header = "SUBMIT_TIME",
     .put = [](O o, V v) { o += format_time(v.row->submitted); }},
    {.letter = 'e',
     .name = "EndTime",
     .header = "END_TIME",
     .put = [](O o, V v) { time_or_none(o, expected_end_of(*v.row)); }},
    {.letter = 'Q',
     .name = "PriorityLong",
     .header = "PRIORITY",
     .put = [](O o, V v) { o += std::to_string(v.row->priority); }},
    {.letter = 'p',
     .name = "Priority",
     .header = "PRIORITY",
     .put = [](O o, V v) { o += std::to_string(v.row->priority); }},
    {.letter = 'x',
     .name = "Cost",
     .header = "COST",
     .put = [](O o, V v) { o += v.row->cost ? format_money(*v.row->cost, 4) : "-"; }},
    {.letter = 'X',
     .name = "CostPerHour",
     .header = "COST/HOUR",
     .put = [](O o, V v) { o += v.row->cost_rate ? format_money(*v.row->cost_rate, 4) : "-"; }},
};

}  // namespace
}  // namespace squeue_cells

std::span<const Column<JobView>> job_columns() {
  return squeue_cells::kColumns;
}

}  // namespace gantry::cli
