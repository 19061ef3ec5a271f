// sacct: shows accounting of jobs and steps as Slurm's does.
#include <fmt/core.h>

#include "cli/slurm/lists/sacct_query.h"
#include "cli/slurm/records/account_json.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kUsualList = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
constexpr std::string_view kSacctPrefixes[] = {"SACCT_"};

bool is_of(const proto::JobRef& ref, const proto::JobRow& row) {
  if (ref.tasks.empty()) return ref.job == row.job || ref.job == row.array_job;
  return ref.job == row.array_job && row.array_task && contains_index(ref.tasks, *row.array_task);
}

// The lines to show. With -j 12.batch only that step is shown, without the job's own line.
struct Choice {
  bool job = true;
  std::vector<const proto::StepRow*> steps;
};
Choice choose_lines(const SacctQuery& q, const proto::HistoryRow& job) {
  Choice choice;
  std::vector<std::string_view> wanted;
  for (const WantedStep& step : q.steps)
    if (is_of(step.job, job.row)) wanted.push_back(step.step);
  choice.job = wanted.empty();
  for (const proto::StepRow& step : job.steps) {
    const bool named = std::find(wanted.begin(), wanted.end(), step.step) != wanted.end();
    if (wanted.empty() ? !q.jobs_only : named) choice.steps.push_back(&step);
  }
  return choice;
}

// The list of fields; "ALL" at any place in it stands for every field.
std::string fields_of(std::string_view asked) {
  std::string list;
  for (const std::string& one : split_list(asked)) {
    if (lower_case(one) != "all") {
      list += one + ",";
      continue;
    }
    for (const Column<AccountRow>& field : account_fields()) list += std::string(field.name) + ",";
  }
  return list;
}

void print_help_format() {
  std::size_t column = 0;
  for (const Column<AccountRow>& field : account_fields()) {
    if (column > 0) fmt::print("{}", column % 4 == 0 ? "\n" : " ");
    fmt::print("{:<19}", field.name);
    ++column;
  }
  fmt::print("\n");
}

void print_accounts(const SacctQuery& q, const History& history, Layout layout) {
  const TableStyle style = list_style(q, layout, q.delimiter);
  const std::string cluster = cluster_name();
  TableWriter table(std::move(layout), style, stdout);
  for (const proto::HistoryRow& job : history.jobs) {
    const Choice choice = choose_lines(q, job);
    AccountRow row{&job, nullptr, history.now, q.units, cluster};
    if (choice.job) add_row(table, account_fields(), row);
    for (const proto::StepRow* step : choice.steps) {
      row.step = step;
      add_row(table, account_fields(), row);
    }
  }
}

Result<int> run_sacct(const Invocation& call) {
  SacctQuery q;
  q.now = system_now();
  int status = 0;
  const auto operands = parse_into(call, &q, status);
  if (!operands) return status;
  if (!operands->empty()) {
    std::string words;
    for (const std::string& operand : *operands) words += " " + operand;
    return refused("Error: Unknown arguments:{}\n", words);
  }
  if (q.help_format) {
    print_help_format();
    return 0;
  }
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  finish_sacct(q);
  std::vector<std::string> unknown;
  const Layout layout =
      list_layout(q.fields.empty() ? std::string(kUsualList) : fields_of(q.fields),
                  infos(account_fields()), unknown);
  if (!unknown.empty())
    return complain(call, fmt::format("Invalid field requested: \"{}\"", unknown.front()));
  ASSIGN(session, Session::open("sacct"));
  ASSIGN(history, ask_history(*session, q.history));
  keep_only(*history, q.sieve);
  if (q.truncate) cut_times(*history, q.history.start, q.history.end);
  if (!q.json && !q.yaml) {
    print_accounts(q, *history, layout);
    return 0;
  }
  Tree jobs = Tree::list();
  const std::string cluster = cluster_name();
  for (const proto::HistoryRow& job : history->jobs)
    jobs.add("", sacct_job_tree({&job, nullptr, history->now, Units::usual, cluster}));
  print_document(q.json ? Shape::json : Shape::yaml, "sacct", {{"jobs", std::move(jobs)}});
  return 0;
}

}  // namespace

extern const Command kSacct;
const Command kSacct{
    {"sacct", "Show accounting of jobs and steps"},
    {.description =
         "Slurm's sacct, over gacct. Jobs have lines of their own, and below them one for the "
         "batch "
         "script, one for what was run from outside (extern), and one for each step. A value that "
         "is longer than its column ends in +.",
     .options = sacct_options(),
     .examples = {{"sacct -X -P -n -o JobIDRaw,State -j 12,13", "States of two jobs, for scripts"},
                  {"sacct -S now-7days -s F,TO,OOM -X", "What went wrong in the last week"},
                  {"sacct -j 12 -o JobID,Elapsed,TotalCPU,MaxRSS%12",
                   "What job 12 and its steps used"}},
     .exits = {{"0", "fine, also when there is no such job"},
               {"1", "no answer, or the command line is wrong"}},
     .run = run_sacct,
     .env_prefixes = kSacctPrefixes}};

}  // namespace gantry::cli::slurm
