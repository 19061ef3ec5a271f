// gctl why: shows the causes for which a job waits in the controller's words, then the planner's
// answers to "what if".
#include <fmt/core.h>

#include "cli/columns/history_rows.h"
#include "cli/columns/job_words.h"
#include "cli/commands/control/gctl.h"
#include "cli/commands/control/gctl_network.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/job/verdict_text.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_why {
namespace {

struct Why {
  bool causes_only = false;
  bool json = false;
};

constexpr Option kWhyOptions[] = {
    flag("brief", 'b', "The causes only, not what would make it start sooner",
         put<&Why::causes_only>),
    flag("json", "As JSON, one document for each job", put<&Why::json>),
};

void print_causes(const proto::JobDetail& job, Instant now) {
  const proto::JobRow& row = job.row;
  if (row.phase == Phase::ended) {
    fmt::print("{}\n", ended_words(row, job.cause));
    return;
  }
  fmt::print("job {} is {}", shown_id(row), words_of(row).state);
  if (row.phase != Phase::queued) {
    if (!row.node_list.empty()) fmt::print(" on {}", row.node_list);
    fmt::print("{}{}\n", job.cause.empty() ? "" : ": ", job.cause);
    return;
  }
  if (job.why.empty()) fmt::print(": {}", describe_verdict(row.verdict, now));
  fmt::print("\n");
  for (const std::string& cause : job.why) fmt::print("  {}\n", as_sentence(cause));
  if (row.expected_start && job.why.empty())
    fmt::print("  expected to start at {}\n", format_time(*row.expected_start));
}

void print_sooner(const proto::WhatIfReply& reply) {
  if (!reply.rows.empty()) fmt::print("  it would start sooner with\n");
  for (const proto::WhatIfRow& row : reply.rows) {
    const std::string when = !row.start                ? "soon"
                             : *row.start <= reply.now ? "at once"
                                                       : "at " + format_time(*row.start);
    fmt::print("    {}: {} ({})\n", row.options, when, row.change);
  }
  if (!reply.modes.empty()) {
    const proto::MigModeRow& first = reply.modes.front();
    fmt::print("  {} with MIG mode {}: an operator can switch GPU {} of {}{} (gctl mig)\n",
               first.only_way ? "it can start only" : "a GPU would be free",
               first.on ? "on" : "off", first.gpu, first.node,
               reply.modes.size() > 1 ? fmt::format(" and {} more", reply.modes.size() - 1) : "");
  }
  if (!reply.complete) fmt::print("  (there was no time to try everything)\n");
}

// Prints what only the planner knows. If the planner cannot answer, the causes are printed all the
// same.
void ask_sooner(const Invocation& in, Session& session, const proto::JobRow& row, bool json) {
  const auto reply = session.call<proto::WhatIfReply>(proto::WhatIf{{row.job, {}}});
  if (!reply)
    fmt::print(stderr, "{}: what would make job {} start sooner is not known: {}\n", in.program(),
               shown_id(row), reply.error().message);
  else if (json)
    fmt::print("{}\n", codec::to_json(*reply, codec::JsonStyle::pretty));
  else
    print_sooner(*reply);
}

// Reports how a job ended that the queue no longer has.
Result<void> tell_ended(Session& session, const proto::JobRef& ref, bool json) {
  ASSIGN(ended, ended_jobs(session, ref));
  if (ended->empty()) return tl::unexpected(no_such_job(ref));
  if (json) {
    fmt::print("{}\n", codec::to_json(proto::HistoryReply{*ended, false, system_now(), {}, {}},
                                      codec::JsonStyle::pretty));
    return {};
  }
  for (const proto::HistoryRow& row : *ended) fmt::print("{}\n", ended_words(row.row, row.cause));
  return {};
}

Result<int> run_why(const Invocation& in) {
  Why why;
  OPERANDS(operands, in, &why, 1, kAnyOperands);
  ASSIGN(refs, job_refs_of(**operands));
  ASSIGN(session, Session::open(in.program()));
  for (const proto::JobRef& ref : *refs) {
    const auto reply = session->call<proto::ShowJobReply>(proto::ShowJob{ref, false});
    const bool gone = reply ? reply->jobs.empty() : reply.error().code == ErrorCode::not_found;
    if (gone) {
      TRY(tell_ended(*session, ref, why.json));
      continue;
    }
    if (!reply) return tl::unexpected(reply.error());
    if (why.json) fmt::print("{}\n", codec::to_json(*reply, codec::JsonStyle::pretty));
    for (const proto::JobDetail& job : reply->jobs) {
      if (!why.json) print_causes(job, reply->now);
      if (job.row.phase == Phase::queued && !why.causes_only)
        ask_sooner(in, *session, job.row, why.json);
      if (job.row.phase == Phase::running && !why.causes_only && !why.json)
        for (const std::string& line : gctl_network::network_trouble(*session, job.row))
          fmt::print("  {}\n", line);
    }
  }
  return 0;
}

}  // namespace

const Command kGctlWhy{
    {"why", "Say why a job does not run, or how it ended", "JOB..."},
    {.description =
         "Of a waiting job: the causes in their order, with numbers; when it may expect to start; "
         "and changes to it that would make it start sooner (fewer GPUs or nodes, a shorter time "
         "limit, another GPU model), which the planner tries out one by one on its view of the "
         "cluster. They are estimates: they go by the time limits of what runs, and others may "
         "submit more urgent work.\n\n"
         "Of a running job: packets that its network refused, and nodes of its own that do not "
         "answer it there, tried from its first node.\n\n"
         "Of a job that has ended: when, with which exit code, and why, from accounting.",
     .options = kWhyOptions,
     .examples = {{"gctl why 12", "What job 12 waits for, and what would make it start sooner"},
                  {"gctl why -b 12 13", "The causes only"},
                  {"gctl why 9", "How job 9 ended, however long ago"}},
     .run = run_why}};

}  // namespace gantry::cli::gctl_why
