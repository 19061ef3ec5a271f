// gqueue: shows the job queue.
#include <fmt/core.h>

#include <ctime>
#include <map>
#include <set>

#include "cli/columns/job_columns.h"
#include "cli/columns/job_words.h"
#include "cli/columns/known_names.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "cli/table.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::gqueue {
namespace {

struct Query {
  proto::ListJobs list;
  std::string format{kQueueFormat};
  bool own_format = false;  // set by -o: values are cut to the widths that it gives
  bool no_header = false;
  bool each_task = false;
  bool me = false;
  bool json = false;
  bool start = false;
  std::optional<Duration> watch;
  std::string program;

  proto::JobFilter& filter() { return list.filter; }
};

Result<void> add_jobs(Query& q, std::string_view text) {
  return add_job_refs(q.list.filter.jobs, text);
}
Result<void> set_format(Query& q, std::string_view text) {
  q.format = text;
  q.own_format = true;
  return {};
}
Result<void> set_watch(Query& q, std::string_view text) {
  if (text.empty()) text = "2";
  ASSIGN(n, parse_integer("seconds", text, 1, 3600));
  q.watch = seconds(*n);
  return {};
}

constexpr Option kOptions[] = {
    takes("account", 'A', "NAME,...", "Jobs of these accounts",
          call<add_words<Query, &proto::JobFilter::accounts>>),
    flag("array", 'r', "One line for each array task", put<&Query::each_task>),
    takes(
        "format", 'o', "FORMAT",
        "Fields as %[[.]WIDTH]LETTER with any text around them; the letters are in the manual page",
        call<set_format>)
        .from_env("FORMAT"),
    takes("job", 'j', "JOB,...", "These jobs: 12, 12_3, 12_[1-4]", call<add_jobs>),
    takes("jobs", "JOB,...", "The same", call<add_jobs>),
    flag("cost", "What jobs have cost so far and cost per hour",
         does<[](Query& q) { q.format = kQueueCostFormat; }>),
    flag("json", "All fields as JSON", put<&Query::json>),
    flag("long", 'l', "Show time limits as well",
         does<[](Query& q) { q.format = kQueueLongFormat; }>),
    flag("me", "My jobs", put<&Query::me>),
    takes("name", 'n', "NAME,...", "Jobs of these names",
          call<add_words<Query, &proto::JobFilter::names>>),
    takes("nodelist", 'w', "NODES", "Jobs on these nodes", call<add_nodes<Query>>),
    flag("noheader", 'h', "No header", put<&Query::no_header>),
    takes("partition", 'p', "PARTITION,...", "Jobs of these partitions",
          call<add_words<Query, &proto::JobFilter::partitions>>)
        .from_env("PARTITION"),
    takes("reservation", 'R', "NAME,...", "Jobs that name these reservations",
          call<add_words<Query, &proto::JobFilter::reservations>>)
        .from_env("RESERVATION"),
    flag("start", "Pending jobs with the time at which they are expected to start",
         does<[](Query& q) {
           q.start = true;
           q.format = kQueueStartFormat;
         }>),
    takes("states", 't', "STATE,...", "Jobs in these states, or all (default: all but ended ones)",
          call<add_words<Query, &proto::JobFilter::states>>)
        .from_env("STATES"),
    takes("user", 'u', "USER,...", "Jobs of these users",
          call<add_words<Query, &proto::JobFilter::users>>)
        .from_env("USERS"),
    flag("why", "Pending jobs with the cause of their wait in words, and when they may start",
         does<[](Query& q) {
           q.start = true;
           q.format = kQueueWhyFormat;
         }>),
    may_take("watch", "SECONDS",
             "Keep showing the queue; when the output is no terminal, a line for each change until "
             "no job is left",
             call<set_watch>),
    refuses("all", 'a', "there are no hidden partitions"),
    refuses("Format", 'O', "use -o/--format"),
    refuses("clusters", 'M', "there is one cluster"),
    refuses("iterate", 'i', "use --watch=SECONDS"),
    refuses("qos", 'q', "there are no QOS"),
    refuses("licenses", 'L', "use squeue -L"),
    refuses("sort", 'S', "jobs are listed by id; use sort(1)"),
    refuses("steps", 's', "use gacct"),
};

constexpr std::string_view kPrefixes[] = {"SQUEUE_", "GQUEUE_"};

proto::ListJobs request_of(const Query& q) {
  proto::ListJobs list = q.list;
  if (q.me) list.filter.users.push_back(login_name());
  if (list.filter.states.empty())
    list.filter.states = q.start ? std::vector<std::string>{"PENDING"}
                                 : std::vector<std::string>{"PENDING", "CONFIGURING", "RUNNING",
                                                            "SUSPENDED", "COMPLETING"};
  return list;
}

// Asks for the pages of the listing and calls `each` for every page.
template <class Each>
Result<void> for_pages(Session& session, proto::ListJobs list, Each each) {
  while (true) {
    ASSIGN(page, session.call<proto::ListJobsReply>(list));
    const bool more = page->more;
    const JobId next = page->next;
    each(*page);
    if (!more) return {};
    if (next <= list.after)
      return fail(ErrorCode::malformed, "the controller gave a page of jobs twice");
    list.after = next;
  }
}

// With -r, the tasks of an array that have not started get a row each.
std::vector<proto::JobRow> each_task(const proto::JobRow& row) {
  std::vector<proto::JobRow> rows;
  const auto tasks = parse_index_ranges(row.array_tasks);
  if (row.array_tasks.empty() || !tasks) return {row};
  for (const IndexRange& range : tasks->ranges) {
    for (std::uint64_t i = range.first; i <= range.last; i += range.step) {
      rows.push_back(row);
      rows.back().array_tasks.clear();
      rows.back().array_task = static_cast<std::uint32_t>(i);
    }
  }
  return rows;
}

void split_arrays(const Query& q, proto::ListJobsReply& page) {
  if (!q.each_task) return;
  std::vector<proto::JobRow> rows;
  for (const proto::JobRow& row : page.rows)
    for (proto::JobRow& one : each_task(row)) rows.push_back(std::move(one));
  page.rows = std::move(rows);
}

// An error if the user named one job and it does not exist. If the user named several, some may be
// gone (as with squeue).
Result<void> check_known(const Query& q, const proto::ListJobsReply& page) {
  if (q.list.filter.jobs.size() == 1 && !page.unknown.empty())
    return fail(ErrorCode::not_found,
                "Invalid job id specified: there is no job " + format_job_ref(page.unknown[0]));
  return {};
}

Result<void> print_table(const Query& q, Session& session, const Layout& layout, std::FILE* out,
                         std::size_t most_rows) {
  TableWriter table(layout, {.header = !q.no_header, .colour = wants_colour(out)}, out);
  Result<void> refused;
  NamesSeen seen;
  std::size_t left_out = 0;
  auto done = for_pages(session, request_of(q), [&](proto::ListJobsReply& page) {
    split_arrays(q, page);
    for (const proto::JobRow& row : page.rows) {
      seen.add(row);
      if (table.rows() < most_rows)
        add_row(table, job_columns(), JobView{&row, page.now});
      else
        ++left_out;
    }
    if (refused) refused = check_known(q, page);
  });
  if (!done) return done;
  if (!refused) return refused;
  table.flush();
  if (left_out > 0) fmt::print(out, "... and {} more\n", left_out);
  return check_names(session, q.list.filter, seen);
}

Result<void> print_json(const Query& q, Session& session) {
  proto::ListJobsReply all;
  Result<void> refused;
  NamesSeen seen;
  auto done = for_pages(session, request_of(q), [&](proto::ListJobsReply& page) {
    split_arrays(q, page);
    if (refused) refused = check_known(q, page);
    all.now = page.now;
    all.unknown = page.unknown;
    for (proto::JobRow& row : page.rows) {
      seen.add(row);
      all.rows.push_back(std::move(row));
    }
  });
  if (!done) return done;
  if (!refused) return refused;
  TRY(check_names(session, q.list.filter, seen));
  fmt::print("{}\n", codec::to_json(all, codec::JsonStyle::pretty));
  return {};
}

void pause(Duration d) {
  const timespec time{static_cast<std::time_t>(d.us / 1'000'000), d.us % 1'000'000 * 1'000};
  ::nanosleep(&time, nullptr);
}

// Shows the listing on a terminal again and again, until it is interrupted.
Result<void> watch_live(const Query& q, Session& session, const Layout& layout) {
  while (true) {
    fmt::print("\033[H\033[2J{}  {}, every {} s\n\n", format_time(system_now()),
               session.config().cluster, q.watch->seconds());
    const int rows = std::max(5, terminal_height(stdout) - 5);
    TRY(print_table(q, session, layout, stdout, static_cast<std::size_t>(rows)));
    std::fflush(stdout);
    pause(*q.watch);
  }
}

// Prints a line for every job that appears, changes or disappears, until none is left.
Result<void> watch_lines(const Query& q, Session& session) {
  std::map<std::string, std::string> before;
  NamesSeen seen;
  while (true) {
    std::map<std::string, std::string> now;
    auto done = for_pages(session, request_of(q), [&](proto::ListJobsReply& page) {
      split_arrays(q, page);
      for (const proto::JobRow& row : page.rows) {
        seen.add(row);
        now[shown_id(row)] = fmt::format("{} {}", words_of(row).state, where_or_why(row));
      }
    });
    if (!done) return done;
    TRY(check_names(session, q.list.filter, seen));
    const std::string time = format_time(system_now());
    for (const auto& [id, text] : now)
      if (const auto old = before.find(id); old == before.end() || old->second != text)
        fmt::print("{} {} {}\n", time, id, text);
    for (const auto& [id, text] : before)
      if (!now.contains(id)) fmt::print("{} {} gone\n", time, id);
    std::fflush(stdout);
    if (now.empty()) return {};
    before = std::move(now);
    pause(*q.watch);
  }
}

Result<int> run(const Invocation& invocation) {
  Query q;
  OPERANDS(operands, invocation, &q, 0, 0);
  q.program = invocation.program();
  TRY(check_states(q.list.filter.states));
  if (q.json && q.watch) return fail(ErrorCode::usage, "--json and --watch exclude each other");
  const auto columns = infos(job_columns());
  ASSIGN(layout, parse_format(q.format, columns, !q.own_format));
  ASSIGN(session, Session::open(q.program));
  Result<void> done;
  if (q.json)
    done = print_json(q, *session);
  else if (q.watch && is_terminal(stdout))
    done = watch_live(q, *session, *layout);
  else if (q.watch)
    done = watch_lines(q, *session);
  else
    done = print_table(q, *session, *layout, stdout, static_cast<std::size_t>(-1));
  if (!done) return tl::unexpected(done.error());
  return 0;
}

}  // namespace

extern const Command kGqueue;
const Command kGqueue{
    {"gqueue", "Show the job queue"},
    {.description =
         "Lists jobs that wait, start, run or end, by id. Jobs that have ended stay listed for a "
         "while with -t all; afterwards gacct knows them.\n\n"
         "Fields of -o: %i id, %A own number, %F array, %K array task, %j name, %t and %T state, "
         "%M "
         "time used, %L time left, %l time limit, %D nodes, %C cores, %m memory, %R nodes or "
         "reason, "
         "%r reason, %w the same in words, %v reservation, %b GPUs, %N nodes, %B first node, %P "
         "partition, %u user, %U uid, %a account, %S start, "
         "%V "
         "submit, %e end, %Q and %p priority. %10x is left-aligned and cut to 10, %.10x "
         "right-aligned.",
     .options = kOptions,
     .examples = {{"gqueue --me", "My jobs that wait or run"},
                  {"gqueue -t all -o '%i %T %r' -j 12", "State and reason of job 12, ended or not"},
                  {"gqueue -p batch -t PD --start",
                   "When pending jobs of a partition are expected to start"},
                  {"gqueue --why -p fraud", "What the pending jobs of a tenant wait for"},
                  {"gqueue --cost -t R", "What running jobs cost"},
                  {"gqueue --watch", "The queue, live"}},
     .exits = {{"0", "fine, also when no job is listed"},
               {"1", "the one job asked for, a user or a partition does not exist, or no answer"},
               {"2", "the command line is wrong"}},
     .run = run,
     .env_prefixes = kPrefixes}};

}  // namespace gantry::cli::gqueue
