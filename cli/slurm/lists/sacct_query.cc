// The table of sacct's options.
#include "cli/slurm/lists/sacct_query.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/slurm/records/queue.h"
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
Result<void> add_sacct_fields(SacctQuery& q, std::string_view text) {
  q.fields += (q.fields.empty() ? "" : ",") + std::string(text);
  return {};
}
Result<void> set_sacct_delimiter(SacctQuery& q, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "--delimiter must not be empty");
  q.delimiter = text;
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

constexpr Option kSacctOptions[] = {
    takes("accounts", 'A', "NAME,...", "Jobs of these accounts",
          call<add_words<SacctQuery, &proto::JobFilter::accounts>>),
    flag("allclusters", 'L', "Jobs of all clusters, which is one", always),
    flag("allocations", 'X', "Jobs only, without their steps", put<&SacctQuery::jobs_only>),
    flag("allusers", 'a', "Jobs of all users (that one may see)", put<&SacctQuery::all_users>),
    flag("array", "Array tasks as ARRAY_TASK, which is always so", always),
    flag("brief", 'b', "JobID, State and ExitCode",
         does<[](SacctQuery& q) { q.fields = kBriefList; }>),
    takes("clusters", 'M', "NAMES", "Our own cluster's name, or all, is what can be given",
          put<&SacctQuery::clusters>),
    takes("cluster", "NAME", "The same", put<&SacctQuery::clusters>),
    takes("delimiter", "TEXT", "Between the values of -p and -P (default |)",
          call<set_sacct_delimiter>),
    flag("duplicates", 'D', "Every run of a requeued job, not only the last",
         put<AT(SacctQuery, history.duplicates)>),
    takes("endtime", 'E', "TIME", "Jobs that existed before this time (default now)",
          call<set_sacct_end>),
    takes("format", 'o', "FIELD[%WIDTH],...",
          "These fields; %-20 aligns left; --helpformat lists them", call<add_sacct_fields>)
        .from_env("FORMAT"),
    takes("fields", "FIELD[%WIDTH],...", "The same", call<add_sacct_fields>),
    takes("gid", 'g', "GROUP,...", "Jobs of these groups, by name or number",
          call<add_sacct_groups>),
    takes("group", "GROUP,...", "The same", call<add_sacct_groups>),
    flag("help", 'h', "Show this help", always),
    flag("helpformat", 'e', "List the fields", put<&SacctQuery::help_format>),
    takes("jobs", 'j', "JOB[.STEP],...", "These jobs or steps", call<add_sacct_jobs>),
    may_take("json", "data_parser", "Jobs as JSON", put<&SacctQuery::json>),
    flag("local", "Jobs of this cluster, which is always so", always),
    flag("long", 'l', "Many columns", does<[](SacctQuery& q) { q.fields = kLongList; }>),
    takes("name", "NAME,...", "Jobs of these names",
          call<add_words<SacctQuery, &proto::JobFilter::names>>),
    takes("ncpus", 'I', "N[-M]", "Jobs that had so many cores",
          call<set_sacct_range<&HistorySieve::cpus>>),
    takes("nnodes", 'i', "N[-M]", "Jobs that had so many nodes",
          call<set_sacct_range<&HistorySieve::nodes>>),
    flag("noconvert", "Sizes in bytes", does<[](SacctQuery& q) { q.units = Units::bytes; }>),
    takes("nodelist", 'N', "NODES", "Jobs that ran on these nodes", call<add_nodes<SacctQuery>>),
    flag("noheader", 'n', "No header", put<&SacctQuery::no_header>),
    flag("parsable", 'p', "Values parted by |, also behind the last", put<&SacctQuery::parsable>),
    flag("parsable2", 'P', "Values parted by |", put<&SacctQuery::parsable2>),
    takes("partition", 'r', "NAME,...", "Jobs of these partitions",
          call<add_words<SacctQuery, &proto::JobFilter::partitions>>),
    takes("qos", 'q', "NAME,...",
          "Jobs of these priority classes; normal is the tenant's default one",
          call<add_asked<&HistorySieve::qos>>),
    takes("reason", 'R', "REASON,...",
          "Jobs that waited, or ended, for these reasons: Resources, Dependency...",
          call<add_asked<&HistorySieve::reasons>>),
    takes("starttime", 'S', "TIME",
          "Jobs that existed after this time (default today, with -j any, with -s now)",
          call<set_sacct_start>),
    takes("state", 's', "STATE,...", "Jobs that were in these states within the time",
          call<add_sacct_states>),
    takes("timelimit-max", 'K', "TIME", "Jobs with a time limit of at most this",
          call<set_sacct_limit<&HistorySieve::limit_max>>),
    takes("timelimit-min", 'k', "TIME", "Jobs with this time limit, or with -K at least this",
          call<set_sacct_limit<&HistorySieve::limit_min>>),
    flag("truncate", 'T', "Start and end no earlier or later than -S and -E",
         put<&SacctQuery::truncate>),
    takes("units", "K|M|G|T", "Sizes in this unit", call<set_sacct_units>),
    flag("use-local-uid", "Users as this machine knows them, which is always so", always),
    takes("user", 'u', "USER,...", "Jobs of these users", call<add_sacct_users>),
    takes("uid", "USER,...", "The same", call<add_sacct_users>),
    flag("verbose", 'v', "List the options that are in force on standard error", always),
    may_take("whole-hetjob", "yes",
             "All components of a heterogeneous job that is named, which is always so",
             call<set_whole_hetjob>),
    may_take("yaml", "data_parser", "Jobs as YAML", put<&SacctQuery::yaml>),
    takes("wckeys", 'W', "KEY,...", "Jobs with these wckeys",
          call<add_asked<&HistorySieve::wckeys>>),
    refuses("associations", 'x', "use --accounts and --user"),
    refuses("batch-script", 'B', "use scontrol write batch_script JOB -"),
    refuses("completion", 'c', "there are no completion logs"),
    refuses("constraints", 'C', "constraints are not in the accounts"),
    refuses("env-vars", "environments are not kept"),
    refuses("expand-patterns", "paths of output files are in scontrol show job"),
    refuses("federation", "there is one cluster"),
    refuses("file", 'f', "there are no completion logs"),
    refuses("flags", 'F', "jobs have no scheduling flags"),
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
