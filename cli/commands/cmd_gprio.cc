// gprio: shows the terms that order waiting jobs, as the scheduler compares them.
#include <fmt/core.h>

#include <algorithm>

#include "cli/columns/history_rows.h"
#include "cli/columns/known_names.h"
#include "cli/columns/tenant_columns.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "cli/table.h"
#include "common/job/public_state.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::gprio {
namespace {

struct Query {
  proto::PriorityTuples tuples;
  std::string format;
  std::uint32_t most = 0;
  bool no_header = false;
  bool json = false;
  proto::JobFilter& filter() { return tuples.filter; }
};

Result<void> add_jobs(Query& q, std::string_view text) {
  return add_job_refs(q.tuples.filter.jobs, text);
}
constexpr Option kOptions[] = {
    takes("account", 'A', "NAME,...", "Jobs of these accounts (projects)",
          call<add_words<Query, &proto::JobFilter::accounts>>),
    takes("format", 'o', "FORMAT", "Fields as %[[.]WIDTH]LETTER with any text around them",
          put<&Query::format>),
    takes("jobs", 'j', "JOB,...", "These jobs", call<add_jobs>),
    flag("json", "As JSON, a page on each line", put<&Query::json>),
    flag("long", 'l', "All fields that are compared, which are wider than 80 columns",
         does<[](Query& q) { q.format = kPriorityLongFormat; }>),
    takes("most", 'n', "N", "Only the first N",
          number<"the number of jobs", 1, 1'000'000'000, &Query::most>),
    flag("noheader", 'h', "No header", put<&Query::no_header>),
    takes("partition", 'p', "PARTITION,...", "Jobs of these tenants and partitions",
          call<add_words<Query, &proto::JobFilter::partitions>>),
    takes("user", 'u', "USER,...", "Jobs of these users",
          call<add_words<Query, &proto::JobFilter::users>>),
    flag("weights", 'w',
         "The terms of the weighted priority, where gantry.yaml sets weights for it",
         does<[](Query& q) { q.format = kPriorityTermsFormat; }>),
};

// For jobs without a row in the reply: reports when they ended, that they do not wait, or that they
// do not exist. Returns false if one is not in the queue.
Result<bool> tell_missing(const Invocation& in, Session& session, const Query& q,
                          const std::vector<proto::PriorityRow>& rows) {
  proto::ListJobs list;
  for (const proto::JobRef& ref : q.tuples.filter.jobs)
    if (std::none_of(rows.begin(), rows.end(), [&](const proto::PriorityRow& row) {
          return ref.job == row.job || ref.job == row.array_job;
        }))
      list.filter.jobs.push_back(ref);
  if (list.filter.jobs.empty()) return true;
  ASSIGN(reply, session.call<proto::ListJobsReply>(list));
  for (const proto::JobRow& row : reply->rows)
    if (row.phase != Phase::ended)
      fmt::print(stderr, "{}: job {} does not wait for its turn: it is {}\n", in.program(),
                 format_job_ref(proto::JobRef{row.job, {}}),
                 public_state(row.phase, row.outcome).name);
  return tell_not_reached(in.program(), session, reply->unknown).unknown == 0;
}

Result<int> run(const Invocation& in) {
  Query q;
  OPERANDS(operands, in, &q, 0, 0);
  const auto columns = priority_columns();
  ASSIGN(layout, parse_format(q.format.empty() ? kPriorityFormat : std::string_view(q.format),
                              infos(columns), q.format.empty() || q.format == kPriorityLongFormat));
  ASSIGN(session, Session::open(in.program()));
  TableWriter table(*layout, {.header = !q.no_header && !q.json}, stdout);
  ASSIGN(reply, session->call<proto::PriorityTuplesReply>(q.tuples));
  if (q.most != 0 && reply->rows.size() > q.most) {
    reply->rows.resize(q.most);
    reply->more = true;
  }
  NamesSeen seen;
  for (const proto::PriorityRow& row : reply->rows) {
    seen.users.insert(row.user);
    seen.partitions.insert(row.partition);
  }
  if (q.json)
    fmt::print("{}\n", codec::to_json(*reply));
  else
    for (const proto::PriorityRow& row : reply->rows) add_row(table, columns, row);
  table.flush();
  TRY(check_names(*session, q.filter(), seen));
  ASSIGN(found, tell_missing(in, *session, q, reply->rows));
  return *found ? 0 : 1;
}

}  // namespace

extern const Command kGprio;
const Command kGprio{
    {"gprio", "Show why waiting jobs go in the order they do"},
    {.description =
         "Jobs are compared field by field, from the left, until one differs: the priority of the "
         "partition; the RANK (the value of the priority class, raised by waiting); whether the "
         "job would borrow; the SHARE values from the top of the cohorts down to the tenant (low "
         "first); the fair-share levels of project and user inside the tenant (high first); the "
         "job's own priority; since when it waits. Without -l the class, what would be borrowed, "
         "the "
         "project's level and the time are left out.\n\n"
         "Fields of -o: %o place, %i job, %u user, %a account, %P partition, %d its priority, %c "
         "class, %r rank (+ what waiting added), %b borrows and at which levels, %v share values, "
         "%f level of the project, %F of the user, %p priority, %w its weighted terms, %t "
         "since.\n\n"
         "With priority weights in gantry.yaml the own priority is their sum, as in Slurm, and "
         "takes "
         "the place of the fair-share levels; classes that do not preempt then have one rank.",
     .options = kOptions,
     .examples = {{"gprio -n 20", "Who is next"},
                  {"gprio -l -j 12,13",
                   "Why 12 goes before 13: the first field in which they differ"}},
     .exits = {{"0", "fine"},
               {"1", "a job, a user or a partition does not exist, or no answer"},
               {"2", "the command line is wrong"}},
     .run = run}};

}  // namespace gantry::cli::gprio
