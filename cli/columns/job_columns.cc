// Slurm's letters and headers; what is empty is shown as squeue shows it.
#include "cli/columns/job_columns.h"

#include "cli/columns/job_words.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

void number(std::string& out, std::uint64_t n) {
  std::array<char, 20> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr);
}
void text_or(std::string& out, const std::string& text, std::string_view empty) {
  out += text.empty() ? empty : std::string_view(text);
}
void time_or_none(std::string& out, const std::optional<Instant>& t) {
  out += t ? format_time(*t) : "N/A";
}

Duration used(const JobView& v) {
  return run_time(*v.row, v.now);
}

std::string first_node(const std::string& list) {
  const auto names = expand_hostlist(list);
  return names && !names->empty() ? names->front() : "";
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
     .put = [](O o, V v) { number(o, v.row->job.value()); }},
    {.letter = 'F',
     .name = "ArrayJobID",
     .header = "ARRAY_JOB_ID",
     .put =
         [](O o, V v) {
           number(o, v.row->array_job.value() != 0 ? v.row->array_job.value() : v.row->job.value());
         }},
    {.letter = 'K',
     .name = "ArrayTaskID",
     .header = "ARRAY_TASK_ID",
     .put =
         [](O o, V v) {
           if (v.row->array_task)
             number(o, *v.row->array_task);
           else
             text_or(o, v.row->array_tasks, "N/A");
         }},
    {.letter = 'j', .name = "Name", .header = "NAME", .put = [](O o, V v) { o += v.row->name; }},
    {.letter = 't',
     .name = "StateCompact",
     .header = "ST",
     .put = [](O o, V v) { o += words_of(*v.row).compact; },
     .colour = state_colour},
    {.letter = 'T',
     .name = "State",
     .header = "STATE",
     .put = [](O o, V v) { o += words_of(*v.row).state; },
     .colour = state_colour},
    {.letter = 'M',
     .name = "TimeUsed",
     .header = "TIME",
     .put = [](O o, V v) { o += format_duration(used(v)); }},
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
    {.letter = 'l',
     .name = "TimeLimit",
     .header = "TIME_LIMIT",
     .put = [](O o, V v) { o += format_time_limit(v.row->time_limit); }},
    {.letter = 'D',
     .name = "NumNodes",
     .header = "NODES",
     .put = [](O o, V v) { number(o, v.row->nodes); }},
    {.letter = 'C',
     .name = "NumCPUs",
     .header = "CPUS",
     .put = [](O o, V v) { number(o, v.row->cpus); }},
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
    {.letter = 'r',
     .name = "Reason",
     .header = "REASON",
     .put = [](O o, V v) { o += reason_of(*v.row); }},
    {.letter = 'w',
     .name = "Why",
     .header = "WHY",
     .put =
         [](O o, V v) {
           o += v.row->phase == Phase::queued ? explained(v.row->verdict, v.now)
                                              : where_or_why(*v.row);
         }},
    {.letter = 'v',
     .name = "Reservation",
     .header = "RESERVATION",
     .put = [](O o, V v) { text_or(o, v.row->reservation, "(null)"); }},
    {.letter = 'b',
     .name = "NumGPUs",
     .header = "GPUS",
     .put = [](O o, V v) { o += gpus_text(*v.row); }},
    {.letter = 'N',
     .name = "NodeList",
     .header = "NODELIST",
     .put = [](O o, V v) { o += v.row->node_list; }},
    {.letter = 'B',
     .name = "BatchHost",
     .header = "EXEC_HOST",
     .put = [](O o, V v) { text_or(o, first_node(v.row->node_list), "n/a"); }},
    {.letter = 'P',
     .name = "Partition",
     .header = "PARTITION",
     .put = [](O o, V v) { o += v.row->partition; }},
    {.letter = 'u',
     .name = "UserName",
     .header = "USER",
     .put = [](O o, V v) { o += v.row->user; }},
    {.letter = 'U',
     .name = "UserID",
     .header = "UID",
     .put = [](O o, V v) { number(o, v.row->uid.value()); }},
    {.letter = 'a',
     .name = "Account",
     .header = "ACCOUNT",
     .put = [](O o, V v) { text_or(o, v.row->account, "(null)"); }},
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

std::span<const Column<JobView>> job_columns() {
  return kColumns;
}

}  // namespace gantry::cli
