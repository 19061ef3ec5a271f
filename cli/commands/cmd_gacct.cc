// gacct: accounting of jobs, both running and ended, with the resources that they used.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "cli/columns/account_columns.h"
#include "cli/columns/history_rows.h"
#include "cli/columns/job_words.h"
#include "cli/columns/known_names.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::gacct {
namespace {

struct StepChoice {  // -j 12.batch
  proto::JobRef job;
  std::string step;
};

struct Query {
  proto::QueryHistory history;
  std::vector<StepChoice> steps;
  std::string fields;
  std::string delimiter = "|";
  Instant now{};
  std::optional<std::string> own_user;  // set if the user did not name whose jobs are meant
  bool all_users = false;
  bool no_header = false;
  bool parsable = false;   // -p: a delimiter at the end as well
  bool parsable2 = false;  // -P
  bool jobs_only = false;  // -X
  bool help_format = false;
  bool efficiency = false;
  bool long_form = false;
  bool json = false;
  bool bytes = false;

  proto::JobFilter& filter() { return history.filter; }
};

// Reads job ids, of which some may name a step: "12,13.batch,14_2.0".
Result<void> add_jobs(Query& q, std::string_view text) {
  int depth = 0;
  std::string id;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || depth > 0) {
      id += c;
      continue;
    }
    const std::size_t dot = id.find('.');
    TRY(add_job_refs(q.history.filter.jobs, id.substr(0, dot)));
    if (dot != std::string::npos)
      q.steps.push_back({q.history.filter.jobs.back(), id.substr(dot + 1)});
    id.clear();
    if (at >= text.size()) break;
  }
  return {};
}
Result<void> set_efficiency(Query& q, std::string_view) {
  q.fields = q.long_form ? kAccountAllEfficiencyFields : kAccountEfficiencyFields;
  q.efficiency = true;
  q.history.series = q.jobs_only = true;
  return {};
}
Result<void> set_delimiter(Query& q, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "must not be empty");
  q.delimiter = text;
  return {};
}

constexpr Option kOptions[] = {
    takes("accounts", 'A', "NAME,...", "Jobs of these accounts",
          call<add_words<Query, &proto::JobFilter::accounts>>),
    flag("allocations", 'X', "Jobs only, without their steps", put<&Query::jobs_only>),
    flag("allusers", 'a', "Jobs of all users (that one may see)", put<&Query::all_users>),
    flag("brief", 'b', "JobID, State and ExitCode",
         does<[](Query& q) { q.fields = kAccountBriefFields; }>),
    takes("delimiter", "TEXT", "Between the values of -p and -P (default |)", call<set_delimiter>),
    flag("duplicates", 'D', "Every run of a requeued job, not only the last",
         put<AT(Query, history.duplicates)>),
    flag("efficiency",
         "What jobs used of the cores, memory and GPUs that they had; with -l also power, energy "
         "and idle time, with --json the series of each GPU",
         call<set_efficiency>),
    takes("endtime", 'E', "TIME", "Jobs that existed before this time",
          put_time<AT(Query, history.end), TimeSense::latest>),
    takes("format", 'o', "FIELD[%WIDTH],...",
          "These fields; %-20 aligns left; --helpformat lists them", put<&Query::fields>)
        .from_env("FORMAT"),
    flag("helpformat", 'e', "List the fields", put<&Query::help_format>),
    takes("jobs", 'j', "JOB[.STEP],...", "These jobs", call<add_jobs>),
    flag("json", "All fields as JSON", put<&Query::json>),
    flag("long", 'l', "Many columns", does<[](Query& q) {
           q.fields = q.efficiency ? kAccountAllEfficiencyFields : kAccountLongFields;
           q.long_form = true;
         }>),
    takes("name", "NAME,...", "Jobs of these names",
          call<add_words<Query, &proto::JobFilter::names>>),
    flag("noconvert", "Sizes in bytes", put<&Query::bytes>),
    takes("nodelist", 'N', "NODES", "Jobs that ran on these nodes", call<add_nodes<Query>>),
    flag("noheader", 'n', "No header", put<&Query::no_header>),
    flag("parsable", 'p', "Values parted by |, also behind the last", put<&Query::parsable>),
    flag("parsable2", 'P', "Values parted by |", put<&Query::parsable2>),
    takes("partition", 'r', "PARTITION,...", "Jobs of these partitions",
          call<add_words<Query, &proto::JobFilter::partitions>>),
    takes("starttime", 'S', "TIME",
          "Jobs that existed after this time: 2026-01-31, now-1day (default: today, or any time "
          "with -j)",
          put_time<AT(Query, history.start), TimeSense::latest>),
    takes("state", 's', "STATE,...", "Jobs in these states",
          call<add_words<Query, &proto::JobFilter::states>>),
    takes("user", 'u', "USER,...", "Jobs of these users",
          call<add_words<Query, &proto::JobFilter::users>>),
    refuses("associations", 'x', "use --accounts"),
    refuses("batch-script", 'B', "use gctl show job --script"),
    refuses("clusters", 'M', "there is one cluster"),
    refuses("gid", 'g', "use --user"),
    refuses("local", 'L', "there is one cluster"),
    refuses("qos", 'q', "there are no QOS"),
    refuses("units", "use --noconvert for bytes"),
    refuses("wckeys", 'W', "there are no wckeys"),
};

constexpr std::string_view kPrefixes[] = {"SACCT_", "GACCT_"};

Result<void> finish_query(Query& q) {
  TRY(check_states(q.history.filter.states));
  const bool by_id = !q.history.filter.jobs.empty();
  if (!by_id && !q.history.start) {
    ASSIGN(today, parse_time("today", q.now, TimeSense::latest));
    q.history.start = *today;
  }
  if (q.history.start && q.history.end && *q.history.end < *q.history.start)
    return fail(ErrorCode::invalid_argument, "the end time is before the start time");
  if (!by_id && !q.all_users && q.history.filter.users.empty() && ::geteuid() != 0)
    q.history.filter.users.push_back(*(q.own_user = login_name()));
  return {};
}

bool same_job(const proto::JobRef& ref, const proto::JobRow& row) {
  if (ref.tasks.empty()) return ref.job == row.job || ref.job == row.array_job;
  return ref.job == row.array_job && row.array_task && contains_index(ref.tasks, *row.array_task);
}

// Whether this step is shown. With -j 12.batch only that step is, without the job's own line;
// `by_step` then becomes true.
bool wants_step(const Query& q, const proto::JobRow& row, std::string_view step, bool& by_step) {
  bool any = false;
  for (const StepChoice& choice : q.steps) {
    if (!same_job(choice.job, row)) continue;
    by_step = true;
    any = any || choice.step == step;
  }
  return any;
}

void add_rows(TableWriter& table, const Query& q, const proto::HistoryReply& reply) {
  for (const proto::HistoryRow& job : reply.rows) {
    bool by_step = false;
    wants_step(q, job.row, "", by_step);
    if (!by_step) add_row(table, account_columns(), AccountView{&job, nullptr, reply.now, q.bytes});
    if (q.jobs_only) continue;
    for (const proto::StepRow& step : job.steps)
      if (!by_step || wants_step(q, job.row, step.step, by_step))
        add_row(table, account_columns(), AccountView{&job, &step, reply.now, q.bytes});
  }
}

// Fails if the query names a job that never existed, or an unknown user or partition.
Result<void> check_known(Session& session, const Query& q, const proto::HistoryReply& reply) {
  NamesSeen seen;
  for (const proto::HistoryRow& job : reply.rows) seen.add(job.row);
  const bool narrowed = q.history.start || q.history.end || !q.history.filter.states.empty();
  for (const proto::JobRef& ref : q.history.filter.jobs) {
    const auto is_it = [&](const proto::HistoryRow& job) { return same_job(ref, job.row); };
    if (std::any_of(reply.rows.begin(), reply.rows.end(), is_it)) continue;
    if (narrowed || ref.component || q.history.filter.jobs.size() > 1) {
      ASSIGN(known, ended_jobs(session, ref));
      if (!known->empty()) continue;
    }
    return tl::unexpected(no_such_job(ref));
  }
  if (q.own_user) seen.users.insert(*q.own_user);
  return check_names(session, q.history.filter, seen);
}

void print_fields() {
  std::string line;
  int column = 0;
  for (const auto& c : account_columns()) {
    fmt::print("{:<20}", c.name);
    if (++column % 4 == 0) fmt::print("\n");
  }
  if (column % 4 != 0) fmt::print("\n");
}

Result<int> run(const Invocation& invocation) {
  Query q;
  q.now = system_now();
  OPERANDS(operands, invocation, &q, 0, 0);
  if (q.help_format) {
    print_fields();
    return 0;
  }
  TRY(finish_query(q));
  const auto columns = infos(account_columns());
  ASSIGN(layout, parse_field_list(q.fields.empty() ? kAccountFields : q.fields, columns));
  ASSIGN(session, Session::open(invocation.program()));
  ASSIGN(reply, history_rows(*session, q.history));
  if (q.json) {
    fmt::print("{}\n", codec::to_json(*reply, codec::JsonStyle::pretty));
    TRY(check_known(*session, q, *reply));
    return 0;
  }
  TableStyle style;
  style.header = !q.no_header;
  if (q.parsable || q.parsable2) {
    style.delimiter = q.delimiter;
    style.trailing_delimiter = !q.parsable2;
  } else {
    style.rule = true;
    style.cut_mark = '+';
    style.colour = wants_colour(stdout);
  }
  TableWriter table(*layout, style, stdout);
  add_rows(table, q, *reply);
  table.flush();
  TRY(check_known(*session, q, *reply));
  return 0;
}

}  // namespace

extern const Command kGacct;
const Command kGacct{
    {"gacct", "Show accounting of jobs"},
    {.description =
         "Lists jobs, waiting, running and ended, with their steps and what they used: processor "
         "time "
         "and peak memory as the kernel counted them for the whole job. Accounting is kept for "
         "ever. The order is that of the job ids.\n\n"
         "A value that is longer than its column ends in `+`; FIELD%30 makes room, -P cuts "
         "nothing.",
     .options = kOptions,
     .examples = {{"gacct", "My jobs of today"},
                  {"gacct -j 12 -o JobID,State,Elapsed,TotalCPU,MaxRSS,NodeList",
                   "What job 12 used"},
                  {"gacct -S now-7days -s F,TO,OOM -X -o JobID,JobName%-20,State,Cause",
                   "What went wrong in the last week, and why"},
                  {"gacct --efficiency -S now-1day -a",
                   "Who used how much of what they had, GPUs too"},
                  {"gacct -nP -X -o jobid,state -j 12,13", "For scripts"}},
     .exits = {{"0", "fine, also when no job is listed"},
               {"1", "a job, user or partition does not exist, or no answer"},
               {"2", "the command line is wrong"}},
     .run = run,
     .env_prefixes = kPrefixes}};

}  // namespace gantry::cli::gacct
