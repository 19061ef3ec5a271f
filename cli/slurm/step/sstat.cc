// sstat: shows what running steps use, as Slurm's does. It has sacct's fields, with the values that
// accounting has now.
#include <fmt/core.h>

#include "cli/slurm/frame.h"
#include "cli/slurm/records/account_fields.h"
#include "cli/slurm/records/history.h"
#include "cli/submit/job_refs.h"

namespace gantry::cli::slurm {
namespace {

// The columns of Slurm's sstat, with its widths where they differ from sacct's.
constexpr std::string_view kStatList =
    "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,"
    "MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,"
    "AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy%14,MaxDiskRead,"
    "MaxDiskReadNode,MaxDiskReadTask,AveDiskRead%12,MaxDiskWrite,MaxDiskWriteNode,"
    "MaxDiskWriteTask,AveDiskWrite%12,TRESUsageInAve%14,TRESUsageInMax%14,TRESUsageInMaxNode%18,"
    "TRESUsageInMaxTask%18,TRESUsageInMin%14,TRESUsageInMinNode%18,TRESUsageInMinTask%18,"
    "TRESUsageInTot%14,TRESUsageOutAve,TRESUsageOutMax,TRESUsageOutMaxNode%19,"
    "TRESUsageOutMaxTask%19,TRESUsageOutMin%15,TRESUsageOutMinNode%19,TRESUsageOutMinTask%19,"
    "TRESUsageOutTot%15";

struct SstatQuery {
  std::vector<std::pair<proto::JobRef, std::string>> steps;  // "" = a step of the job is chosen
  std::string fields;
  Units units = Units::usual;
  bool all_steps = false;
  bool no_header = false;
  bool parsable = false;
  bool parsable2 = false;
  bool help_format = false;
};
Result<void> add_sstat_jobs(SstatQuery& q, std::string_view text) {
  for (const std::string& word : split_list(text)) {
    const std::size_t dot = word.find('.');
    std::vector<proto::JobRef> refs;
    if (!add_job_refs(refs, word.substr(0, dot)))
      return fail(ErrorCode::invalid_argument, fmt::format("Invalid job id specified: {}", word));
    q.steps.emplace_back(refs.front(), dot == std::string::npos ? "" : word.substr(dot + 1));
  }
  return {};
}
constexpr Option kSstatOptions[] = {
    flag("allsteps", 'a', "All running steps of the jobs", put<&SstatQuery::all_steps>),
    takes("fields", "FIELD[%WIDTH],...", "The same", put<&SstatQuery::fields>),
    takes("format", 'o', "FIELD[%WIDTH],...", "These fields; --helpformat lists them",
          put<&SstatQuery::fields>),
    flag("help", 'h', "Show this help", always),
    flag("helpformat", 'e', "List the fields", put<&SstatQuery::help_format>),
    takes("jobs", 'j', "JOB[.STEP],...", "These jobs or steps", call<add_sstat_jobs>),
    flag("noconvert", "Sizes in bytes", does<[](SstatQuery& q) { q.units = Units::bytes; }>),
    flag("noheader", 'n', "No header", put<&SstatQuery::no_header>),
    flag("parsable", 'p', "Values parted by |, also behind the last", put<&SstatQuery::parsable>),
    flag("parsable2", 'P', "Values parted by |", put<&SstatQuery::parsable2>),
    flag("verbose", 'v', "List the options that are in force on standard error", always),
    refuses("json", "use sacct --json"),
    refuses("pidformat", 'i', "processes are in their containers"),
    refuses("yaml", "use sacct --yaml"),
};

// The steps to show. By default the numbered step that began last, else the batch script.
std::vector<const proto::StepRow*> stat_steps(const SstatQuery& q, const proto::HistoryRow& job,
                                              const std::string& step) {
  std::vector<const proto::StepRow*> running;
  for (const proto::StepRow& one : job.steps)
    if (one.running && one.step != "extern" && (step.empty() || one.step == step))
      running.push_back(&one);
  if (!step.empty() || q.all_steps || running.size() < 2) return running;
  return {running.back()};
}

void print_stat_fields() {
  std::vector<std::string> names;
  for (const std::string& name : split_list(kStatList))
    names.push_back(name.substr(0, name.find('%')));
  std::sort(names.begin(), names.end());
  for (std::size_t i = 0; i < names.size(); ++i)
    fmt::print("{}{:<19}", i == 0 ? "" : i % 4 == 0 ? "\n" : " ", names[i]);
  fmt::print("\n");
}

Result<int> run_sstat(const Invocation& call) {
  SstatQuery q;
  int status = 0;
  auto operands = parse_into(call, &q, status);
  if (!operands) return status;
  for (const std::string& operand : *operands)
    if (!add_sstat_jobs(q, operand)) return complain(call, "Invalid job id specified: " + operand);
  if (q.help_format) {
    print_stat_fields();
    return 0;
  }
  if (q.steps.empty()) return complain(call, "You didn't give me any jobs to stat.");
  std::vector<std::string> unknown;
  Layout layout = list_layout(q.fields.empty() ? kStatList : std::string_view(q.fields),
                              infos(account_fields()), unknown);
  if (!unknown.empty())
    return complain(call, fmt::format("Invalid field requested: \"{}\"", unknown.front()));
  const TableStyle style = list_style(q, layout);
  ASSIGN(session, Session::open("sstat"));
  const std::string cluster = cluster_name();
  TableWriter table(std::move(layout), style, stdout);
  for (const auto& [ref, step] : q.steps) {
    proto::QueryHistory query;
    query.filter.jobs = {ref};
    ASSIGN(history, ask_history(*session, query));
    std::size_t shown = 0;
    for (const proto::HistoryRow& job : history->jobs)
      for (const proto::StepRow* one : stat_steps(q, job, step)) {
        add_row(table, account_fields(), {&job, one, history->now, q.units, cluster});
        ++shown;
      }
    if (shown > 0) continue;
    complain(call, fmt::format("No steps running for job {}", ref.job.value()));
  }
  return status;
}

}  // namespace

extern const Command kSstat;
const Command kSstat{
    {"sstat", "Show what running steps use", "[JOB[.STEP]...]"},
    {.description =
         "Slurm's sstat. The figures are those of the steps that run now, as their nodes have "
         "reported them last.",
     .options = kSstatOptions,
     .examples = {{"sstat -j 12.batch -o JobID,MaxRSS,AveCPU",
                   "What the script of job 12 uses so far"}},
     .exits = {{"0", "fine, also when nothing runs"},
               {"1", "no answer, or the command line is wrong"}},
     .run = run_sstat}};

}  // namespace gantry::cli::slurm
