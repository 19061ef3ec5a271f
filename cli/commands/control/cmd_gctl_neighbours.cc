// gctl neighbours: which jobs share a job's nodes, what slowed it down and when, and what was done
// about it. The controller leaves out what the asker may not see of other jobs.
#include <fmt/core.h>

#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/codec/codec.h"
#include "common/job/verdict_text.h"
#include "common/proto/neighbours.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_neighbours {
namespace {

struct NeighbourOptions {
  bool json = false;
};

constexpr Option kOptions[] = {
    flag("json", "As JSON", put<&NeighbourOptions::json>),
};

void print(const proto::NeighbourList& list) {
  fmt::print("job {}\n", list.job);
  std::size_t unseen = 0;
  for (const proto::NeighbourRow& row : list.neighbours) {
    if (row.job.empty()) {
      ++unseen;
      continue;
    }
    fmt::print("  on {}: job {} of {}{}\n", row.node, row.job, row.user,
               row.tenant.empty() ? "" : ", tenant " + row.tenant);
  }
  if (unseen > 0)
    fmt::print("  and {} of others\n", counted(static_cast<std::int64_t>(unseen), "job"));
  if (list.neighbours.empty()) fmt::print("  it has its nodes for itself\n");
  for (const proto::NeighbourEvent& e : list.events)
    fmt::print("{} to {}, {}: {}\n", format_time(e.since), e.ended ? format_time(*e.ended) : "now",
               e.node, e.text);
  if (list.events.empty()) fmt::print("nobody holds it up, and it holds up nobody\n");
  for (const proto::ApartRow& row : list.apart)
    fmt::print("until {} it is kept off the nodes of {}, where there is another place\n",
               format_time(row.until),
               row.user.empty() ? "jobs of another tenant"
                                : fmt::format("jobs '{}' of {}", row.name, row.user));
}

Result<int> run(const Invocation& in) {
  NeighbourOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  ASSIGN(refs, job_refs_of({(**operands).front()}));
  ASSIGN(list, ask<proto::NeighbourList>(in.program(), proto::ListNeighbours{refs->front()}));
  if (options.json)
    fmt::print("{}\n", codec::to_json(*list, codec::JsonStyle::pretty));
  else
    print(*list);
  return 0;
}

}  // namespace

const Command kGctlNeighbours{
    {"neighbours", "Who shares a job's nodes, and who holds it up", "JOB"},
    {.description =
         "What was full and when, who is the cause, with how much confidence, and who is held back "
         "for it; and off whose nodes jobs of its user and name are kept. Jobs of other tenants "
         "have no name here, except for operators. docs/neighbours.md says what is measured.",
     .options = kOptions,
     .examples = {{"gctl neighbours 12",
                   "Who shares the nodes of job 12, and who held it up on what"}},
     .run = run}};

}  // namespace gantry::cli::gctl_neighbours
