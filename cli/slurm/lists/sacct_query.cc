// The table of sacct's options.
#include "cli/slurm/lists/sacct_query.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/slurm/records/queue.h"
#include "cli/submit/job_filter.h"
#include "cli/submit/job_refs.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::string_view kBriefList = "JobID,State,ExitCode";
constexpr std::string_view kLongList =
    "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,"
    "MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,"
    "MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,"
    "ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,"
    "AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES,"
    "TRESUsageInAve,TRESUsageInMax,TRESUsageOutAve,TRESUsageOutMax";

template <auto Names>
Result<void> add_asked(SacctQuery& q, std::string_view text) {
  for (std::string& word : split_list(text)) (q.sieve.*Names).push_back(std::move(word));
  return {};
}
Result<void> add_sacct_groups(SacctQuery& q, std::string_view text) {
  for (std::string& word : split_list(text)) {
    const bool is_gid = word.find_first_not_of("0123456789") == std::string::npos;
    const group* known =
        is_gid ? ::getgrgid(static_cast<gid_t>(std::atoi(word.c_str()))) : ::getgrnam(word.c_str());
    if (known == nullptr)
      return fail(ErrorCode::invalid_argument, fmt::format("fatal: Invalid group id: {}", word));
    q.sieve.groups.emplace_back(known->gr_name);
  }
  return {};
}
// Sets a range: N, or N-M.
template <auto Range>
Result<void> set_sacct_range(SacctQuery& q, std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto low = parse_integer("number", text.substr(0, dash), 0, UINT32_MAX);
  const auto high = dash == std::string_view::npos
                        ? low
                        : parse_integer("number", text.substr(dash + 1), 0, UINT32_MAX);
  if (!low || !high || *low > *high)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no number and no range of numbers, as 4 or 2-8", text));
  q.sieve.*Range = {static_cast<std::uint32_t>(*low), static_cast<std::uint32_t>(*high)};
  return {};
}
template <auto Limit>
Result<void> set_sacct_limit(SacctQuery& q, std::string_view text) {
  const auto limit = parse_duration(text);
  if (!limit || (*limit && **limit <= Duration{}))
    return fail(ErrorCode::invalid_argument, "fatal: Invalid timelimit specification");
  q.sieve.*Limit = *limit ? **limit : kUnlimited;
  return {};
}

// Reads job ids, of which some may name a step: "12,13.batch,14_2.0".
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
  // "1970-01-01-00:00:01" is accepted too.
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
  ASSIGN(t, sacct_time(q, text));
  q.history.start = *t;
  return {};
}
Result<void> set_sacct_end(SacctQuery& q, std::string_view text) {
  ASSIGN(t, sacct_time(q, text));
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
    {.name = "gid",
     .letter = 'g',
     .arg = Arg::required,
     .value = "GROUP,...",
     .help = "Jobs of these groups, by name or number",
     .set = call<add_sacct_groups>},
    {.name = "group",
     .arg = Arg::required,
     .value = "GROUP,...",
     .help = "The same",
     .set = call<add_sacct_groups>},
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
    {.name = "ncpus",
     .letter = 'I',
     .arg = Arg::required,
     .value = "N[-M]",
     .help = "Jobs that had so many cores",
     .set = call<set_sacct_range<&HistorySieve::cpus>>},
    {.name = "nnodes",
     .letter = 'i',
     .arg = Arg::required,
     .value = "N[-M]",
     .help = "Jobs that had so many nodes",
     .set = call<set_sacct_range<&HistorySieve::nodes>>},
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
     .set = call<add_asked<&HistorySieve::qos>>},
    {.name = "reason",
     .letter = 'R',
     .arg = Arg::required,
     .value = "REASON,...",
     .help = "Jobs that waited, or ended, for these reasons: Resources, Dependency...",
     .set = call<add_asked<&HistorySieve::reasons>>},
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
    {.name = "timelimit-max",
     .letter = 'K',
     .arg = Arg::required,
     .value = "TIME",
     .help = "Jobs with a time limit of at most this",
     .set = call<set_sacct_limit<&HistorySieve::limit_max>>},
    {.name = "timelimit-min",
     .letter = 'k',
     .arg = Arg::required,
     .value = "TIME",
     .help = "Jobs with this time limit, or with -K at least this",
     .set = call<set_sacct_limit<&HistorySieve::limit_min>>},
    {.name = "truncate",
     .letter = 'T',
     .help = "Start and end no earlier or later than -S and -E",
     .set = put<&SacctQuery::truncate>},
    {.name = "units",
     .arg = Arg::required,
     .value = "K|M|G|T",
     .help = "Sizes in this unit",
     .set = call<set_sacct_units>},
    {.name = "use-local-uid",
     .help = "Users as this machine knows them, which is always so",
     .set = always},
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
     .help = "List the options that are in force on standard error",
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
     .set = call<add_asked<&HistorySieve::wckeys>>},
    {.name = "associations", .letter = 'x', .refused = "use --accounts and --user"},
    {.name = "batch-script", .letter = 'B', .refused = "use scontrol write batch_script JOB -"},
    {.name = "completion", .letter = 'c', .refused = "there are no completion logs"},
    {.name = "constraints", .letter = 'C', .refused = "constraints are not in the accounts"},
    {.name = "env-vars", .refused = "environments are not kept"},
    {.name = "expand-patterns", .refused = "paths of output files are in scontrol show job"},
    {.name = "federation", .refused = "there is one cluster"},
    {.name = "file", .letter = 'f', .refused = "there are no completion logs"},
    {.name = "flags", .letter = 'F', .refused = "jobs have no scheduling flags"},
};

}  // namespace

std::span<const Option> sacct_options() {
  return kSacctOptions;
}

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

}  // namespace gantry::cli::slurm
