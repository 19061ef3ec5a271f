// gcancel: ends jobs or sends them a signal.
#include <fmt/core.h>

#include "cli/columns/ended_jobs.h"
#include "cli/columns/job_words.h"
#include "cli/columns/known_names.h"
#include "cli/command.h"
#include "cli/session.h"
#include "cli/submit/job_filter.h"
#include "cli/submit/job_refs.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::gcancel {
namespace {

struct Request {
  proto::CancelJobs cancel;
  bool me = false;
  bool quiet = false;
  bool verbose = false;
  bool batch = false;
  bool full = false;

  proto::JobFilter& filter() { return cancel.filter; }
};

// Sets a filter. An empty word, which comes from a variable that is not set, is refused, because it
// must not mean all jobs.
template <std::vector<std::string> proto::JobFilter::*Member>
Result<void> add_given(Request& r, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "must not be empty");
  return add_words<Request, Member>(r, text);
}
Result<void> set_signal(Request& r, std::string_view text) {
  ASSIGN(signal, parse_signal(text));
  r.cancel.signal = *signal;
  return {};
}

constexpr Option kOptions[] = {
    {.name = "account",
     .letter = 'A',
     .arg = Arg::required,
     .value = "NAME",
     .help = "Jobs of this account",
     .set = call<add_given<&proto::JobFilter::accounts>>},
    {.name = "batch",
     .letter = 'b',
     .help = "Send the signal to the batch shell only",
     .set = put<&Request::batch>},
    {.name = "full",
     .letter = 'f',
     .help = "Send the signal to the batch shell and to all steps",
     .set = put<&Request::full>},
    {.name = "me", .help = "My jobs", .set = put<&Request::me>},
    {.name = "name",
     .letter = 'n',
     .arg = Arg::required,
     .value = "NAME",
     .help = "Jobs of this name",
     .set = call<add_given<&proto::JobFilter::names>>},
    {.name = "jobname",
     .arg = Arg::required,
     .value = "NAME",
     .help = "The same",
     .set = call<add_given<&proto::JobFilter::names>>},
    {.name = "nodelist",
     .letter = 'w',
     .arg = Arg::required,
     .value = "NODES",
     .help = "Jobs on these nodes",
     .set = call<add_nodes<Request>>},
    {.name = "partition",
     .letter = 'p',
     .arg = Arg::required,
     .value = "PARTITION",
     .help = "Jobs of this partition",
     .set = call<add_given<&proto::JobFilter::partitions>>},
    {.name = "quiet",
     .letter = 'Q',
     .help = "No complaint about jobs that could not be cancelled or do not exist",
     .set = put<&Request::quiet>},
    {.name = "reservation",
     .letter = 'R',
     .arg = Arg::required,
     .value = "NAME",
     .help = "Jobs that name this reservation",
     .set = call<add_given<&proto::JobFilter::reservations>>},
    {.name = "signal",
     .letter = 's',
     .arg = Arg::required,
     .value = "SIGNAL",
     .help = "Send this signal to the job's steps instead of ending the job: TERM, SIGUSR1, 15",
     .set = call<set_signal>},
    {.name = "state",
     .letter = 't',
     .arg = Arg::required,
     .value = "STATE",
     .help = "Jobs in this state: PENDING, RUNNING",
     .set = call<add_given<&proto::JobFilter::states>>},
    {.name = "user",
     .letter = 'u',
     .arg = Arg::required,
     .value = "USER",
     .help = "Jobs of this user",
     .set = call<add_given<&proto::JobFilter::users>>},
    {.name = "verbose", .letter = 'v', .help = "Say what was done", .set = put<&Request::verbose>},
    {.name = "clusters", .letter = 'M', .refused = "there is one cluster"},
    {.name = "ctld", .refused = "every cancel goes to the controller"},
    {.name = "hurry", .letter = 'H', .refused = "there is no staging to skip"},
    {.name = "interactive",
     .letter = 'i',
     .refused = "gcancel asks no questions; look first with gqueue"},
    {.name = "qos", .letter = 'q', .refused = "there are no QOS"},
    {.name = "sibling", .refused = "there is one cluster"},
    {.name = "wckey", .refused = "there are no wckeys"},
};

constexpr Example kExamples[] = {
    {"gcancel 12 15_3 16_[4-9]", "A job, an array task, some tasks of an array"},
    {"gcancel --me -t PENDING", "All my jobs that have not started"},
    {"gcancel -s USR1 -b 12", "Send SIGUSR1 to the batch shell of job 12"},
};
constexpr ExitDoc kExits[] = {
    {"0", "done; also when a job had ended already"},
    {"1",
     "a job, user or partition does not exist, a job belongs to someone else, an id is "
     "malformed, or no answer"},
    {"2", "the command line is wrong"}};

Result<int> run(const Invocation& invocation) {
  Request r;
  ASSIGN(operands, invocation.parse(&r, 0, kAnyOperands));
  if (!*operands) return 0;
  proto::JobFilter& filter = r.cancel.filter;
  for (const std::string& operand : **operands) TRY(add_job_refs(filter.jobs, operand));
  TRY(check_states(filter.states));
  if (r.batch && r.full) return fail(ErrorCode::usage, "--batch and --full exclude each other");
  if ((r.batch || r.full) && !r.cancel.signal)
    return fail(ErrorCode::usage, "--batch and --full say who gets a --signal; give one");
  r.cancel.scope = r.batch  ? proto::SignalScope::batch_shell
                   : r.full ? proto::SignalScope::full
                            : proto::SignalScope::steps;
  r.cancel.all_mine = r.me;
  if (!r.me && filter.jobs.empty() && filter.users.empty() && filter.names.empty() &&
      filter.partitions.empty() && filter.accounts.empty() && filter.nodes.empty() &&
      filter.states.empty())
    return fail(ErrorCode::usage, "No job identification provided");
  ASSIGN(session, Session::open(invocation.program()));
  ASSIGN(reply, session->call<proto::JobsDone>(r.cancel));
  if (r.verbose)
    fmt::print(stderr, "{}: {} {} {}\n", invocation.program(), reply->changed,
               reply->changed == 1 ? "job" : "jobs", r.cancel.signal ? "signalled" : "cancelled");
  NotReached missed;
  if (!r.quiet) missed = tell_not_reached(invocation.program(), *session, reply->not_active);
  for (const auto& refused : reply->refused)
    if (!r.quiet)
      fmt::print(stderr, "{}: error: Kill job error on job id {}: {}\n", invocation.program(),
                 format_job_ref(refused.job), refused.error.message);
  if (reply->changed == 0 && reply->refused.empty()) TRY(check_names(*session, filter, {}));
  return reply->refused.empty() && missed.unknown == 0 ? 0 : 1;
}

}  // namespace

extern const Command kGcancel;
const Command kGcancel{
    .name = "gcancel",
    .summary = "Cancel jobs, or send them a signal",
    .operands = "[JOB...]",
    .description =
        "Ends the jobs that are named or that meet all the conditions given: SIGTERM and SIGCONT "
        "to "
        "every process, and SIGKILL when the time that the cluster allows (kill_wait) is over. A "
        "job "
        "that waits is taken from the queue.\n\n"
        "With --signal nothing is ended: the signal is sent, to the steps, or with --batch to the "
        "batch shell, or with --full to both.",
    .options = kOptions,
    .examples = kExamples,
    .exits = kExits,
    .run = run,
};

}  // namespace gantry::cli::gcancel
