// gcancel: ends jobs or sends them a signal.
#include <fmt/core.h>

#include "cli/columns/history_rows.h"
#include "cli/columns/job_words.h"
#include "cli/columns/known_names.h"
#include "cli/command.h"
#include "cli/session.h"
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
constexpr Option kOptions[] = {
    takes("account", 'A', "NAME", "Jobs of this account",
          call<add_given<&proto::JobFilter::accounts>>),
    flag("batch", 'b', "Send the signal to the batch shell only", put<&Request::batch>),
    flag("full", 'f', "Send the signal to the batch shell and to all steps", put<&Request::full>),
    flag("me", "My jobs", put<&Request::me>),
    takes("name", 'n', "NAME", "Jobs of this name", call<add_given<&proto::JobFilter::names>>),
    takes("jobname", "NAME", "The same", call<add_given<&proto::JobFilter::names>>),
    takes("nodelist", 'w', "NODES", "Jobs on these nodes", call<add_nodes<Request>>),
    takes("partition", 'p', "PARTITION", "Jobs of this partition",
          call<add_given<&proto::JobFilter::partitions>>),
    flag("quiet", 'Q', "No complaint about jobs that could not be cancelled or do not exist",
         put<&Request::quiet>),
    takes("reservation", 'R', "NAME", "Jobs that name this reservation",
          call<add_given<&proto::JobFilter::reservations>>),
    takes("signal", 's', "SIGNAL",
          "Send this signal to the job's steps instead of ending the job: TERM, SIGUSR1, 15",
          parsed<parse_signal, AT(Request, cancel.signal)>),
    takes("state", 't', "STATE", "Jobs in this state: PENDING, RUNNING",
          call<add_given<&proto::JobFilter::states>>),
    takes("user", 'u', "USER", "Jobs of this user", call<add_given<&proto::JobFilter::users>>),
    flag("verbose", 'v', "Say what was done", put<&Request::verbose>),
    refuses("clusters", 'M', "there is one cluster"),
    refuses("ctld", "every cancel goes to the controller"),
    refuses("hurry", 'H', "there is no staging to skip"),
    refuses("interactive", 'i', "gcancel asks no questions; look first with gqueue"),
    refuses("qos", 'q', "there are no QOS"),
    refuses("sibling", "there is one cluster"),
    refuses("wckey", "there are no wckeys"),
};

Result<int> run(const Invocation& invocation) {
  Request r;
  OPERANDS(operands, invocation, &r, 0, kAnyOperands);
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
    {"gcancel", "Cancel jobs, or send them a signal", "[JOB...]"},
    {.description =
         "Ends the jobs that are named or that meet all the conditions given: SIGTERM and SIGCONT "
         "to "
         "every process, and SIGKILL when the time that the cluster allows (kill_wait) is over. A "
         "job "
         "that waits is taken from the queue.\n\n"
         "With --signal nothing is ended: the signal is sent, to the steps, or with --batch to the "
         "batch shell, or with --full to both.",
     .options = kOptions,
     .examples = {{"gcancel 12 15_3 16_[4-9]", "A job, an array task, some tasks of an array"},
                  {"gcancel --me -t PENDING", "All my jobs that have not started"},
                  {"gcancel -s USR1 -b 12", "Send SIGUSR1 to the batch shell of job 12"}},
     .exits = {{"0", "done; also when a job had ended already"},
               {"1",
                "a job, user or partition does not exist, a job belongs to someone else, an id is "
                "malformed, or no answer"},
               {"2", "the command line is wrong"}},
     .run = run}};

}  // namespace gantry::cli::gcancel
