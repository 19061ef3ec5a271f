#include "cli/slurm/lists/squeue_steps.h"

#include <fmt/core.h>

#include "cli/columns/job_columns.h"
#include "cli/columns/job_words.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/records/account_fields.h"
#include "cli/slurm/records/history.h"
#include "cli/slurm/records/job_json.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kStepFormat = "%.15i %.8j %.9P %.8u %.9M %N";

using StepOf = const AccountRow&;
using Out = std::string&;

std::string step_id(StepOf v) {
  return shown_id(v.job->row) + "." + v.step->step;
}

constexpr Column<AccountRow> kStepFields[] = {
    {'A', "NumTasks", "TASKS", [](Out o, StepOf v) { put_number(o, v.step->tasks); }},
    {'C', "NumCPUs", "CPUS", [](Out o, StepOf v) { put_number(o, v.step->cpus); }},
    {'i', "StepID", "STEPID", [](Out o, StepOf v) { o += step_id(v); }},
    {'j', "StepName", "NAME", [](Out o, StepOf v) { o += v.step->name; }},
    {'M', "TimeUsed", "TIME", [](Out o, StepOf v) { o += format_duration(elapsed_of(v)); }},
    {'N', "Nodes", "NODELIST", [](Out o, StepOf v) { o += v.step->node_list; }},
    {'P', "Partition", "PARTITION", [](Out o, StepOf v) { o += v.job->row.partition; }},
    {'S', "StartTime", "START_TIME", [](Out o, StepOf v) { o += shown_time(v.step->started); }},
    {'u', "UserName", "USER", [](Out o, StepOf v) { o += v.job->row.user; }},
    {'U', "UserID", "USER", [](Out o, StepOf v) { put_number(o, v.job->row.uid.value()); }},
    {'l', "TimeLimit", "TIME_LIMIT",
     [](Out o, StepOf v) {
       o += v.step->time_limit ? format_duration(*v.step->time_limit) : "UNLIMITED";
     }},
    {'b', "tres-per-node", "TRES_PER_NODE",
     [](Out o, StepOf v) { text_or(o, v.step->tres.per_node, "N/A"); }},
    {0, "ArrayJobID", "ARRAY_JOB_ID",
     [](Out o, StepOf v) {
       if (v.job->row.array_job.value() != 0)
         put_number(o, v.job->row.array_job.value());
       else
         o += "N/A";
     }},
    {0, "ArrayTaskID", "ARRAY_TASK_ID", [](Out o, StepOf v) { put_task(o, v.job->row); }},
    {0, "Cluster", "CLUSTER", [](Out o, StepOf v) { o += v.cluster; }},
    {0, "JobID", "JOBID", [](Out o, StepOf v) { put_number(o, v.job->row.job.value()); }},
    {0, "StepState", "STATE", [](Out o, StepOf v) { o += step_state(*v.job, *v.step); }}};

bool is_wanted(const StepsQuestion& question, const std::string& id) {
  const std::string job = id.substr(0, id.find('.'));
  const auto names = [&](const std::string& word) { return word == id || word == job; };
  return question.wanted.empty() ||
         std::any_of(question.wanted.begin(), question.wanted.end(), names);
}

}  // namespace

Result<int> show_steps(const Invocation& call, const StepsQuestion& question) {
  const std::span<const Column<AccountRow>> fields = kStepFields;
  std::vector<std::string> unknown;
  const std::string_view letters = question.letters.empty() ? kStepFormat : question.letters;
  const auto names = infos(fields);
  Layout layout = question.names.empty() ? letters_layout(letters, names, unknown)
                                         : names_layout(question.names, names, unknown);
  for (const std::string& name : unknown)
    complain(call, "Invalid job step format specification: " + name);
  ASSIGN(session, Session::open("squeue"));
  proto::QueryHistory query;
  query.filter = question.filter;
  query.filter.states = {"RUNNING", "SUSPENDED"};
  if (query.filter.jobs.empty()) query.start = system_now();
  ASSIGN(history, ask_history(*session, query));
  TableStyle style;
  style.header = !question.no_header;
  const std::string cluster = cluster_name();
  TableWriter table(std::move(layout), style, stdout);
  for (const proto::HistoryRow& job : history->jobs)
    for (const proto::StepRow& step : job.steps) {
      const AccountRow row{&job, &step, history->now, Units::usual, cluster};
      if (step.running && is_wanted(question, step_id(row))) add_row(table, fields, row);
    }
  return 0;
}

}  // namespace gantry::cli::slurm
