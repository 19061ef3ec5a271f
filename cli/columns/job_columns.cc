// The columns with Slurm's letters and headers. Empty values are shown as squeue shows them.
#include "cli/columns/job_columns.h"

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
  return job_value<JobView>(name);
}
consteval Column<JobView> coloured(Column<JobView> column) {
  column.colour = state_colour;
  return column;
}

using O = std::string&;
using V = const JobView&;

constexpr Column<JobView> kColumns[] = {
    {'i', "JobID", "JOBID", [](O o, V v) { o += shown_id(*v.row); }},
    {'A', "JobIDRaw", "JOBID", [](O o, V v) { put_number(o, v.row->job.value()); }},
    same("ArrayJobID"),
    same("ArrayTaskID"),
    same("Name"),
    coloured(same("StateCompact")),
    coloured(same("State")),
    same("TimeUsed"),
    {'L', "TimeLeft", "TIME_LEFT",
     [](O o, V v) {
       if (!v.row->time_limit)
         o += "UNLIMITED";
       else
         o += format_duration(std::max(*v.row->time_limit - used(v), Duration{}));
     }},
    same("TimeLimit"),
    same("NumNodes"),
    same("NumCPUs"),
    {'m', "MinMemory", "MIN_MEMORY",
     [](O o, V v) {
       o += v.row->memory_per_node == 0 ? "0" : format_memory(v.row->memory_per_node);
     }},
    {'R', "ReasonList", "NODELIST(REASON)", [](O o, V v) { o += where_or_why(*v.row); }},
    same("Reason"),
    {'w', "Why", "WHY",
     [](O o, V v) {
       o += v.row->phase == Phase::queued ? describe_verdict(v.row->verdict, v.now)
                                          : where_or_why(*v.row);
     }},
    same("Reservation"),
    {'b', "NumGPUs", "GPUS", [](O o, V v) { o += gpus_text(*v.row); }},
    same("NodeList"),
    same("BatchHost"),
    same("Partition"),
    same("UserName"),
    same("UserID"),
    same("Account"),
    {'S', "StartTime", "START_TIME",
     [](O o, V v) { time_or_none(o, v.row->started ? v.row->started : v.row->expected_start); }},
    {'V', "SubmitTime", "SUBMIT_TIME", [](O o, V v) { o += format_time(v.row->submitted); }},
    {'e', "EndTime", "END_TIME", [](O o, V v) { time_or_none(o, expected_end_of(*v.row)); }},
    {'Q', "PriorityLong", "PRIORITY", [](O o, V v) { o += std::to_string(v.row->priority); }},
    {'p', "Priority", "PRIORITY", [](O o, V v) { o += std::to_string(v.row->priority); }},
    {'x', "Cost", "COST", [](O o, V v) { o += v.row->cost ? format_money(*v.row->cost, 4) : "-"; }},
    {'X', "CostPerHour", "COST/HOUR",
     [](O o, V v) { o += v.row->cost_rate ? format_money(*v.row->cost_rate, 4) : "-"; }}};

}  // namespace
}  // namespace squeue_cells

std::span<const Column<JobView>> job_columns() {
  return squeue_cells::kColumns;
}

}  // namespace gantry::cli
