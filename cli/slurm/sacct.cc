// sacct: accounting of jobs and steps, in Slurm's manner.
#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/files.h"
#include "cli/job_filter.h"
#include "cli/job_refs.h"
#include "cli/slurm/account_fields.h"
#include "cli/slurm/account_json.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/history.h"
#include "cli/slurm/queue.h"
#include "common/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kUsualList = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
constexpr std::string_view kBriefList = "JobID,State,ExitCode";
constexpr std::string_view kLongList =
    "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,"
    "MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,"
    "MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,"
    "ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,"
    "AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES,"
    "TRESUsageInAve,TRESUsageInMax,TRESUsageOutAve,TRESUsageOutMax";

struct WantedStep {  // -j 12.batch
  proto::JobRef job;
  std::string step;
};

struct SacctQuery {
  proto::QueryHistory history;
  std::vector<WantedStep> steps;
  std::optional<std::string> clusters;
  std::vector<std::string> qos, wckeys;  // none = any
  std::string fields;
  std::string delimiter = "|";
  Units units = Units::usual;
  Instant now{};
  bool all_users = false;
  bool no_header = false;
  bool parsable = false;   // -p: a delimiter at the end as well
  bool parsable2 = false;  // -P
  bool jobs_only = false;  // -X
  bool truncate = false;   // -T
  bool help_format = false;
  bool json = false;
  bool yaml = false;

  proto::JobFilter& filter() { return history.filter; }
};

template <auto Names>
Result<void> add_asked(SacctQuery& q, std::string_view text) {
  for (std::string& word : split_list(text)) (q.*Names).push_back(std::move(word));
  return {};
}

// Ids, of which some may name a step: "12,13.batch,14_2.0".
Result<void> add_sacct_jobs(SacctQuery& q, std::string_view text) {
  int depth = 0;
  std::string id;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || (depth > 0 && at < text.size())) {
      id += c;
      continue;
    }
    const std::size_t dot = id.find('.');
    if (!id.empty() && !add_job_refs(q.filter().jobs, id.substr(0, dot)))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("fatal: Bad job/step specified: {}", id));
    if (dot != std::string::npos) q.steps.push_back({q.filter().jobs.back(), id.substr(dot + 1)});
    id.clear();
  }
  return {};
}

Result<Instant> sacct_time(const SacctQuery& q, std::string_view text) {
  std::string tidy(text);
  // "1970-01-01-00:00:01" is taken as well.
  if (tidy.size() > 11 && tidy[4] == '-' && tidy[7] == '-' && tidy[10] == '-') tidy[10] = 'T';
  auto t = parse_time(tidy, q.now, TimeSense::latest);
  if (!t)
    return fail(ErrorCode::invalid_argument,
                fmt::format("Invalid time specification (pos=0): {}\n{}", text, t.error().message));
  return t;
}
Result<void> set_whole_hetjob(SacctQuery&, std::string_view text) {
  if (text.empty() || text == "yes") return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\": name a component as JOB+N to see it alone", text));
}
Result<void> set_sacct_start(SacctQuery& q, std::string_view text) {
  const auto t = sacct_time(q, text);
  if (!t) return tl::unexpected(t.error());
  q.history.start = *t;
  return {};
}
Result<void> set_sacct_end(SacctQuery& q, std::string_view text) {
  const auto t = sacct_time(q, text);
  if (!t) return tl::unexpected(t.error());
  q.history.end = *t;
  return {};
}
Result<void> set_sacct_brief(SacctQuery& q, std::string_view) {
  q.fields = kBriefList;
  return {};
}
Result<void> set_sacct_long(SacctQuery& q, std::string_view) {
  q.fields = kLongList;
  return {};
}
Result<void> add_sacct_fields(SacctQuery& q, std::string_view text) {
  q.fields += (q.fields.empty() ? "" : ",") + std::string(text);
  return {};
}
Result<void> set_sacct_delimiter(SacctQuery& q, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "--delimiter must not be empty");
  q.delimiter = text;
  return {};
}
Result<void> set_sacct_duplicates(SacctQuery& q, std::string_view) {
  q.history.duplicates = true;
  return {};
}
Result<void> set_sacct_units(SacctQuery& q, std::string_view text) {
  static constexpr std::pair<char, Units> kLetters[] = {
      {'K', Units::kilo}, {'M', Units::mega}, {'G', Units::giga}, {'T', Units::tera}};
  for (const auto& [letter, units] : kLetters)
    if (text.size() == 1 && upper_case(text)[0] == letter) {
      q.units = units;
      return {};
    }
  return fail(ErrorCode::invalid_argument, fmt::format("Invalid unit type: {}", text));
}
Result<void> set_sacct_noconvert(SacctQuery& q, std::string_view) {
  q.units = Units::bytes;
  return {};
}
Result<void> add_sacct_states(SacctQuery& q, std::string_view text) {
  if (auto done = add_states(q.filter().states, text); !done)
    return fail(ErrorCode::invalid_argument,
                fmt::format("fatal: unrecognized job state value '{}'", text));
  return {};
}
Result<void> add_sacct_users(SacctQuery& q, std::string_view text) {
  for (std::string& word : split_list(text)) {
    const bool is_uid = word.find_first_not_of("0123456789") == std::string::npos;
    const passwd* user = is_uid ? ::getpwuid(static_cast<uid_t>(std::atoi(word.c_str()))) : nullptr;
    q.filter().users.push_back(user != nullptr ? user->pw_name : std::move(word));
  }
  return {};
}
Result<void> set_sacct_clusters(SacctQuery& q, std::string_view text) {
  q.clusters = text;
  return {};
}
template <bool SacctQuery::*Shape>
Result<void> set_sacct_shape(SacctQuery& q, std::string_view) {
  q.*Shape = true;
  return {};
}

constexpr Option kSacctOptions[] = {
    {.name = "accounts",
     .letter = 'A',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these accounts",
     .set = call<add_words<SacctQuery, &proto::JobFilter::accounts>>},
    {.name = "allclusters",
     .letter = 'L',
     .help = "Jobs of all clusters, which is one",
     .set = always},
    {.name = "allocations",
     .letter = 'X',
     .help = "Jobs only, without their steps",
     .set = put<&SacctQuery::jobs_only>},
    {.name = "allusers",
     .letter = 'a',
     .help = "Jobs of all users (that one may see)",
     .set = put<&SacctQuery::all_users>},
    {.name = "array", .help = "Array tasks as ARRAY_TASK, which is always so", .set = always},
    {.name = "brief",
     .letter = 'b',
     .help = "JobID, State and ExitCode",
     .set = call<set_sacct_brief>},
    {.name = "clusters",
     .letter = 'M',
     .arg = Arg::required,
     .value = "NAMES",
     .help = "Our own cluster's name, or all, is what can be given",
     .set = call<set_sacct_clusters>},
    {.name = "cluster",
     .arg = Arg::required,
     .value = "NAME",
     .help = "The same",
     .set = call<set_sacct_clusters>},
    {.name = "delimiter",
     .arg = Arg::required,
     .value = "TEXT",
     .help = "Between the values of -p and -P (default |)",
     .set = call<set_sacct_delimiter>},
    {.name = "duplicates",
     .letter = 'D',
     .help = "Every run of a requeued job, not only the last",
     .set = call<set_sacct_duplicates>},
    {.name = "endtime",
     .letter = 'E',
     .arg = Arg::required,
     .value = "TIME",
     .help = "Jobs that existed before this time (default now)",
     .set = call<set_sacct_end>},
    {.name = "format",
     .letter = 'o',
     .arg = Arg::required,
     .value = "FIELD[%WIDTH],...",
     .help = "These fields; %-20 aligns left; --helpformat lists them",
     .set = call<add_sacct_fields>,
     .env = "FORMAT"},
    {.name = "fields",
     .arg = Arg::required,
     .value = "FIELD[%WIDTH],...",
     .help = "The same",
     .set = call<add_sacct_fields>},
    {.name = "help", .letter = 'h', .help = "Show this help", .set = always},
    {.name = "helpformat",
     .letter = 'e',
     .help = "List the fields",
     .set = put<&SacctQuery::help_format>},
    {.name = "jobs",
     .letter = 'j',
     .arg = Arg::required,
     .value = "JOB[.STEP],...",
     .help = "These jobs or steps",
     .set = call<add_sacct_jobs>},
    {.name = "json",
     .arg = Arg::optional,
     .value = "data_parser",
     .help = "Jobs as JSON",
     .set = call<set_sacct_shape<&SacctQuery::json>>},
    {.name = "local", .help = "Jobs of this cluster, which is always so", .set = always},
    {.name = "long", .letter = 'l', .help = "Many columns", .set = call<set_sacct_long>},
    {.name = "name",
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these names",
     .set = call<add_words<SacctQuery, &proto::JobFilter::names>>},
    {.name = "noconvert", .help = "Sizes in bytes", .set = call<set_sacct_noconvert>},
    {.name = "nodelist",
     .letter = 'N',
     .arg = Arg::required,
     .value = "NODES",
     .help = "Jobs that ran on these nodes",
     .set = call<add_nodes<SacctQuery>>},
    {.name = "noheader", .letter = 'n', .help = "No header", .set = put<&SacctQuery::no_header>},
    {.name = "parsable",
     .letter = 'p',
     .help = "Values parted by |, also behind the last",
     .set = put<&SacctQuery::parsable>},
    {.name = "parsable2",
     .letter = 'P',
     .help = "Values parted by |",
     .set = put<&SacctQuery::parsable2>},
    {.name = "partition",
     .letter = 'r',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these partitions",
     .set = call<add_words<SacctQuery, &proto::JobFilter::partitions>>},
    {.name = "qos",
     .letter = 'q',
     .arg = Arg::required,
     .value = "NAME,...",
     .help = "Jobs of these priority classes; normal is the tenant's default one",
     .set = call<add_asked<&SacctQuery::qos>>},
    {.name = "starttime",
     .letter = 'S',
     .arg = Arg::required,
     .value = "TIME",
     .help = "Jobs that existed after this time (default today, with -j any, with -s now)",
     .set = call<set_sacct_start>},
    {.name = "state",
     .letter = 's',
     .arg = Arg::required,
     .value = "STATE,...",
     .help = "Jobs that were in these states within the time",
     .set = call<add_sacct_states>},
    {.name = "truncate",
     .letter = 'T',
     .help = "Start and end no earlier or later than -S and -E",
     .set = put<&SacctQuery::truncate>},
    {.name = "units",
     .arg = Arg::required,
     .value = "K|M|G|T",
     .help = "Sizes in this unit",
     .set = call<set_sacct_units>},
    {.name = "user",
     .letter = 'u',
     .arg = Arg::required,
     .value = "USER,...",
     .help = "Jobs of these users",
     .set = call<add_sacct_users>},
    {.name = "uid",
     .arg = Arg::required,
     .value = "USER,...",
     .help = "The same",
     .set = call<add_sacct_users>},
    {.name = "verbose",
     .letter = 'v',
     .help = "Say more, of which there is nothing",
     .set = always},
    {.name = "whole-hetjob",
     .arg = Arg::optional,
     .value = "yes",
     .help = "All components of a heterogeneous job that is named, which is always so",
     .set = call<set_whole_hetjob>},
    {.name = "yaml",
     .arg = Arg::optional,
     .value = "data_parser",
     .help = "Jobs as YAML",
     .set = call<set_sacct_shape<&SacctQuery::yaml>>},
    {.name = "wckeys",
     .letter = 'W',
     .arg = Arg::required,
     .value = "KEY,...",
     .help = "Jobs with these wckeys",
     .set = call<add_asked<&SacctQuery::wckeys>>},
    {.name = "associations", .letter = 'x', .refused = "use --accounts and --user"},
    {.name = "batch-script", .letter = 'B', .refused = "use scontrol write batch_script JOB -"},
    {.name = "completion", .letter = 'c', .refused = "there are no completion logs"},
    {.name = "constraints", .letter = 'C', .refused = "constraints are not in the accounts"},
    {.name = "env-vars", .refused = "environments are not kept"},
    {.name = "expand-patterns", .refused = "paths of output files are in scontrol show job"},
    {.name = "federation", .refused = "there is one cluster"},
    {.name = "file", .letter = 'f', .refused = "there are no completion logs"},
    {.name = "flags", .letter = 'F', .refused = "jobs have no scheduling flags"},
    {.name = "gid", .letter = 'g', .refused = "use --user"},
    {.name = "group", .refused = "use --user"},
    {.name = "ncpus", .letter = 'I', .refused = "use -o NCPUS and look"},
    {.name = "nnodes", .letter = 'i', .refused = "use -o NNodes and look"},
    {.name = "reason", .letter = 'R', .refused = "use -o Reason and look"},
    {.name = "timelimit-max", .letter = 'K', .refused = "use -o TimelimitRaw and look"},
    {.name = "timelimit-min", .letter = 'k', .refused = "use -o TimelimitRaw and look"},
    {.name = "use-local-uid", .refused = "users are known by name"},
};
constexpr std::string_view kSacctPrefixes[] = {"SACCT_"};

// The time that is asked about, and whose jobs.
void finish_sacct(SacctQuery& q) {
  proto::QueryHistory& history = q.history;
  const bool by_id = !history.filter.jobs.empty();
  if (!by_id && !history.start) {
    const bool by_state = !history.filter.states.empty() && !history.end;
    history.start = by_state ? q.now : *parse_time("today", q.now, TimeSense::latest);
  }
  if (!by_id && !q.all_users && history.filter.users.empty() && ::geteuid() != 0)
    history.filter.users.push_back(login_name());
}

bool is_of(const proto::JobRef& ref, const proto::JobRow& row) {
  if (ref.tasks.empty()) return ref.job == row.job || ref.job == row.array_job;
  return ref.job == row.array_job && row.array_task && contains_index(ref.tasks, *row.array_task);
}

// With -j 12.batch only that step; the job's own line is then left out.
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

void print_help_format() {
  std::size_t column = 0;
  for (const Field<AccountRow>& field : account_fields()) {
    if (column > 0) fmt::print("{}", column % 4 == 0 ? "\n" : " ");
    fmt::print("{:<19}", field.name);
    ++column;
  }
  fmt::print("\n");
}

void print_accounts(const SacctQuery& q, const History& history, Layout layout) {
  TableStyle style;
  style.header = !q.no_header;
  if (q.parsable || q.parsable2) {
    style.delimiter = q.delimiter;
    style.trailing_delimiter = !q.parsable2;
  } else {
    style.rule = true;
    style.cut_mark = '+';
    layout.after = " ";
  }
  const std::string cluster = cluster_name();
  TableWriter table(std::move(layout), style, stdout);
  for (const proto::HistoryRow& job : history.jobs) {
    const Choice choice = choose_lines(q, job);
    AccountRow row{&job, nullptr, history.now, q.units, cluster};
    if (choice.job) put_row(table, account_fields(), row);
    for (const proto::StepRow* step : choice.steps) {
      row.step = step;
      put_row(table, account_fields(), row);
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
    fmt::print(stderr, "Error: Unknown arguments:{}\n", words);
    return 1;
  }
  if (q.help_format) {
    print_help_format();
    return 0;
  }
  std::string named;
  if (!check_clusters(call, q.clusters, named, status)) return status;
  finish_sacct(q);
  std::vector<std::string> unknown;
  const Layout layout = list_layout(q.fields.empty() ? kUsualList : std::string_view(q.fields),
                                    names_of(account_fields()), unknown);
  if (!unknown.empty()) {
    complain(call, fmt::format("Invalid field requested: \"{}\"", unknown.front()));
    return 1;
  }
  auto session = Session::open("sacct");
  if (!session) return tl::unexpected(session.error());
  auto history = ask_history(*session, q.history);
  if (!history) return tl::unexpected(history.error());
  keep_only(*history, q.qos, q.wckeys);
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

constexpr Example kSacctExamples[] = {
    {"sacct -X -P -n -o JobIDRaw,State -j 12,13", "States of two jobs, for scripts"},
    {"sacct -S now-7days -s F,TO,OOM -X", "What went wrong in the last week"},
    {"sacct -j 12 -o JobID,Elapsed,TotalCPU,MaxRSS%12", "What job 12 and its steps used"},
};
constexpr ExitDoc kSacctExits[] = {{"0", "fine, also when there is no such job"},
                                   {"1", "no answer, or the command line is wrong"}};

}  // namespace

extern const Command kSacct;
const Command kSacct{
    .name = "sacct",
    .summary = "Show accounting of jobs and steps",
    .description =
        "Slurm's sacct, over gacct. Jobs have lines of their own, and below them one for the batch "
        "script, one for what was run from outside (extern), and one for each step. A value that "
        "is longer than its column ends in +.",
    .options = kSacctOptions,
    .examples = kSacctExamples,
    .exits = kSacctExits,
    .run = run_sacct,
    .env_prefixes = kSacctPrefixes,
};

}  // namespace gantry::cli::slurm
