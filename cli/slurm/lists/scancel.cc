// scancel: ends jobs, or sends them a signal, as Slurm's does.
#include <fmt/core.h>
#include <pwd.h>

#include <csignal>

#include "cli/columns/job_words.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/records/queue.h"
#include "cli/submit/job_refs.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct ScancelRequest {
  proto::CancelJobs cancel;
  std::optional<std::string> clusters;
  bool me = false;
  bool quiet = false;
  bool verbose = false;
  bool batch = false;
  bool full = false;
  bool interactive = false;
  std::vector<std::string> qos, wckeys;  // filters that the controller does not apply; empty = any
  std::vector<proto::SignalStep> steps;  // JOB.STEP

  proto::JobFilter& filter() { return cancel.filter; }
};

// Sets a filter. An empty word, which comes from a variable that is not set, is refused, because it
// must not mean all jobs.
template <std::vector<std::string> proto::JobFilter::*Member>
Result<void> add_scancel_words(ScancelRequest& r, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "an empty word matches no job");
  return add_words<ScancelRequest, Member>(r, text);
}
template <std::vector<std::string> ScancelRequest::*Member>
Result<void> add_scancel_choice(ScancelRequest& r, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "an empty word matches no job");
  (r.*Member).emplace_back(text);
  return {};
}
Result<void> set_scancel_signal(ScancelRequest& r, std::string_view text) {
  const auto signal = parse_signal(text);
  if (!signal)
    return fail(ErrorCode::invalid_argument, fmt::format("Unknown job signal: {}", text));
  r.cancel.signal = *signal;
  return {};
}
Result<void> add_scancel_states(ScancelRequest& r, std::string_view text) {
  for (std::string& word : split_list(text)) {
    static constexpr std::string_view kAllowed[] = {"PENDING", "PD",        "RUNNING",
                                                    "R",       "SUSPENDED", "S"};
    if (std::find(std::begin(kAllowed), std::end(kAllowed), upper_case(word)) == std::end(kAllowed))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("Invalid job state specified: {}\nValid job states are PENDING, "
                              "RUNNING, and SUSPENDED",
                              word));
    r.filter().states.push_back(std::move(word));
  }
  return {};
}
constexpr Option kScancelOptions[] = {
    takes("account", 'A', "NAME", "Jobs of this account",
          call<add_scancel_words<&proto::JobFilter::accounts>>)
        .from_env("ACCOUNT"),
    flag("batch", 'b', "Signal the batch shell only", put<&ScancelRequest::batch>)
        .from_env("BATCH"),
    takes("clusters", 'M', "NAMES", "Only this cluster's name is accepted",
          put<&ScancelRequest::clusters>),
    takes("cluster", "NAME", "The same", put<&ScancelRequest::clusters>),
    flag("ctld", "Send the signal through the controller, which is always so", always)
        .from_env("CTLD"),
    flag("full", 'f', "Signal the batch shell and all steps", put<&ScancelRequest::full>)
        .from_env("FULL"),
    flag("hurry", 'H', "Skip what is staged out behind a job, of which there is nothing", always)
        .from_env("HURRY"),
    flag("interactive", 'i', "Ask about each job", put<&ScancelRequest::interactive>)
        .from_env("INTERACTIVE"),
    takes("jobname", "NAME", "Jobs of this name",
          call<add_scancel_words<&proto::JobFilter::names>>),
    flag("me", "My jobs", put<&ScancelRequest::me>),
    takes("name", 'n', "NAME", "Jobs of this name",
          call<add_scancel_words<&proto::JobFilter::names>>)
        .from_env("NAME"),
    takes("nodelist", 'w', "NODES", "Jobs on these nodes", call<add_nodes<ScancelRequest>>),
    takes("partition", 'p', "NAME", "Jobs of this partition",
          call<add_scancel_words<&proto::JobFilter::partitions>>)
        .from_env("PARTITION"),
    takes("qos", 'q', "NAME", "Jobs of this priority class; normal is the tenant's default one",
          call<add_scancel_choice<&ScancelRequest::qos>>)
        .from_env("QOS"),
    flag("quiet", 'Q', "No complaint about jobs that have ended", put<&ScancelRequest::quiet>)
        .from_env("QUIET"),
    takes("reservation", 'R', "NAME", "Jobs that name this reservation",
          call<add_scancel_words<&proto::JobFilter::reservations>>),
    takes("signal", 's', "SIGNAL",
          "Send this signal to the steps instead of ending the job: TERM, SIGUSR1, 15",
          call<set_scancel_signal>),
    takes("state", 't', "STATE", "Jobs in this state: PENDING, RUNNING or SUSPENDED",
          call<add_scancel_states>)
        .from_env("STATE"),
    takes("user", 'u', "USER", "Jobs of this user",
          call<add_scancel_words<&proto::JobFilter::users>>)
        .from_env("USER"),
    flag("verbose", 'v', "Say what is done", put<&ScancelRequest::verbose>).from_env("VERBOSE"),
    takes("wckey", "KEY", "Jobs with this wckey", call<add_scancel_choice<&ScancelRequest::wckeys>>)
        .from_env("WCKEY"),
    refuses("admin-comment", "who cancelled a job is recorded by itself"),
    refuses("cron", 'c', "there are no scrontab jobs"),
    refuses("sibling", "there is one cluster"),
};
constexpr std::string_view kScancelPrefixes[] = {"SCANCEL_"};

bool names_no_job(const ScancelRequest& r) {
  const proto::JobFilter& f = r.cancel.filter;
  return !r.me && r.steps.empty() && f.jobs.empty() && f.users.empty() && f.names.empty() &&
         f.partitions.empty() && f.accounts.empty() && f.nodes.empty() && f.states.empty() &&
         f.reservations.empty() && r.qos.empty() && r.wckeys.empty();
}

// Reads ids of jobs, which may be separated by commas as well as blanks.
bool add_scancel_jobs(const Invocation& call, const std::vector<std::string>& operands,
                      ScancelRequest& r) {
  for (const std::string& operand : operands) {
    if (const std::size_t dot = operand.find('.'); dot != std::string::npos) {
      const auto job = parse_job_ref(operand.substr(0, dot));
      const auto step = parse_integer("step", operand.substr(dot + 1), 0, UINT32_MAX);
      if (!job || !step || job->job.value() == 0) {
        complain(call, "Invalid job id " + operand);
        return false;
      }
      r.steps.push_back({*job, StepId(static_cast<std::uint32_t>(*step)), SIGKILL});
      continue;
    }
    const bool read = add_job_refs(r.filter().jobs, operand).has_value();
    if (!read || r.filter().jobs.back().job.value() == 0) {
      complain(call, "Invalid job id " + operand);
      return false;
    }
  }
  return true;
}

// Works out the combined meaning of --signal, --batch and --full.
void settle_signal(ScancelRequest& r) {
  proto::CancelJobs& cancel = r.cancel;
  const bool choosy = r.batch || r.full;
  if (choosy && !cancel.signal) cancel.signal = SIGKILL;
  if (!choosy && cancel.signal == SIGKILL) cancel.signal.reset();  // SIGKILL ends the job
  cancel.scope = r.full    ? proto::SignalScope::full
                 : r.batch ? proto::SignalScope::batch_shell
                           : proto::SignalScope::steps;
  cancel.all_mine = r.me;
}

// Asks the user; `what` is the beginning of the question. A line that begins with y means yes; the
// end of the input means no.
bool may_cancel(std::string_view what, const proto::JobRow& row) {
  fmt::print("Cancel {} name={} partition={} [y/n]? ", what, row.name, row.partition);
  std::fflush(stdout);
  std::string answer;
  for (int c = 0; (c = std::getchar()) != EOF && c != '\n';) answer += static_cast<char>(c);
  return answer.starts_with('y') || answer.starts_with('Y');
}

// The job of a step, for the question about it.
Result<std::vector<QueueRow>> job_of_step(const proto::SignalStep& step) {
  ASSIGN(session, Session::open("scancel"));
  QueueQuestion question;
  question.list.filter.jobs = {step.job};
  question.list.filter.states = {"RUNNING", "SUSPENDED", "COMPLETING"};
  return ask_queue(*session, question, cluster_name());
}

// Prints the line of -v about a signal: "Terminating job 12", "Signal 10 to batch job 12".
void say_signal(const ScancelRequest& r, std::string_view what, const std::string& name) {
  if (!r.verbose || r.quiet) return;
  const std::string_view kind = what != "job" ? "" : r.batch ? "batch " : r.full ? "full " : "";
  if (r.cancel.signal && *r.cancel.signal != SIGKILL)
    fmt::print(stderr, "scancel: Signal {} to {}{} {}\n", *r.cancel.signal, kind, what, name);
  else
    fmt::print(stderr, "scancel: Terminating {}{} {}\n", kind, what, name);
}

// Signals the steps one after the other. A step that has ended is no error.
int signal_steps(const Invocation& call, const ScancelRequest& r) {
  int status = 0;
  for (proto::SignalStep step : r.steps) {
    const std::string name = fmt::format("{}.{}", format_job_ref(step.job), step.step.value());
    const auto failed = [&](const std::string& why) {
      if (!r.quiet) complain(call, fmt::format("Kill job error on job step id {}: {}", name, why));
    };
    if (r.interactive) {
      const auto job = job_of_step(step);
      if (!job || job->empty()) {
        failed(job ? "Invalid job id specified" : words_for(job.error()).text);
        status = 1;
        continue;
      }
      if (!may_cancel("step_id=" + name, job->front().row)) continue;
    }
    if (r.cancel.signal) step.signal = *r.cancel.signal;
    say_signal(r, "step", name);
    const auto done = ask<proto::Ok>("scancel", step);
    if (done) continue;
    const bool over = done.error().message.starts_with("there is no step");
    if (!over || r.verbose) failed(words_for(done.error()).text);
    if (!over) status = 1;
  }
  return status;
}

// True if only steps were named. The job filter is then empty, and must not be taken to mean all
// jobs.
bool only_steps(const ScancelRequest& r) {
  ScancelRequest rest = r;
  rest.steps.clear();
  return !r.steps.empty() && names_no_job(rest);
}

bool has_wckey(const QueueRow& row, const std::vector<std::string>& wckeys) {
  if (wckeys.empty()) return true;
  if (!row.detail) return false;
  const std::string& own = row.detail->spec.wckey;
  return !own.empty() && std::find(wckeys.begin(), wckeys.end(), own) != wckeys.end();
}

// True if the controller can select the jobs by itself, so no list of them is needed.
bool leaves_choice(const ScancelRequest& r) {
  if (r.interactive || !r.qos.empty() || !r.wckeys.empty()) return false;
  ScancelRequest rest = r;
  rest.steps.clear();
  rest.filter().jobs.clear();
  return !r.verbose || names_no_job(rest);
}

// Prints with -v that no job is left, and which conditions were given.
void say_none(const Invocation& call, const ScancelRequest& r) {
  if (!r.verbose || r.quiet) return;
  std::string conditions;
  const auto add = [&](std::string_view name, const std::vector<std::string>& values) {
    for (const std::string& value : values)
      conditions += fmt::format("{}{}={}", conditions.empty() ? "" : " ", name, value);
  };
  const proto::JobFilter& f = r.cancel.filter;
  add("job_name", f.names);
  add("user_name", f.users);
  add("account", f.accounts);
  add("partition", f.partitions);
  add("qos", r.qos);
  add("reservation", f.reservations);
  add("state", f.states);
  add("nodelist", f.nodes);
  add("wckey", r.wckeys);
  complain(call, "No active jobs match ALL job filters, including: " + conditions);
}

// True if conditions other than job ids were given. Then a named job has to wait or run; with ids
// alone, ended jobs are allowed.
bool is_choosy(const ScancelRequest& r) {
  ScancelRequest rest = r;
  rest.filter().jobs.clear();
  return r.cancel.signal || r.batch || r.interactive || !names_no_job(rest);
}

// Complains about a named job that neither waits nor runs.
void say_gone(const ScancelRequest& r, const proto::JobRef& ref,
              std::string_view why = "Invalid job id specified") {
  if (!r.quiet)
    fmt::print(stderr, "scancel: error: Kill job error on job id {}: {}\n", format_job_ref(ref),
               why);
}

// Complains about the named jobs that neither wait nor run; returns the exit status.
Result<int> check_named(Session& session, const ScancelRequest& r) {
  if (r.cancel.filter.jobs.empty()) return 0;
  QueueQuestion question;
  question.list.filter.jobs = r.cancel.filter.jobs;
  question.list.filter.states = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING"};
  ASSIGN(rows, ask_queue(session, question, cluster_name()));
  int status = 0;
  for (const proto::JobRef& ref : r.cancel.filter.jobs) {
    const auto is_meant = [&](const QueueRow& row) {
      return row.row.job == ref.job || row.row.array_job == ref.job;
    };
    const auto is_active = [&](const QueueRow& row) {
      return is_meant(row) && row.row.phase != Phase::finishing;
    };
    if (std::any_of(rows->begin(), rows->end(), is_active)) continue;
    const bool ends = std::any_of(rows->begin(), rows->end(), is_meant);
    if (ends && !r.interactive) continue;
    say_gone(r, ref,
             ends ? "Job/step already completing or completed" : "Invalid job id specified");
    status = 1;
  }
  return status;
}

// Applies --qos, --wckey and --interactive: replaces the filter by the list of the remaining jobs.
// Returns false if no job remains. Sets `status` to 1 if a named job has ended.
Result<bool> choose_jobs(ScancelRequest& r, int& status) {
  ASSIGN(session, Session::open("scancel"));
  QueueQuestion question;
  question.list.filter = r.filter();
  if (r.me) question.list.filter.users.push_back(login_name());
  if (question.list.filter.states.empty())
    question.list.filter.states = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED"};
  question.qos = r.qos;
  question.details = !r.qos.empty() || !r.wckeys.empty();
  ASSIGN(gone, check_named(*session, r));
  status = std::max(status, *gone);
  ASSIGN(rows, ask_queue(*session, question, cluster_name()));
  std::vector<proto::JobRef> chosen;
  for (const QueueRow& row : *rows) {
    if (!has_wckey(row, r.wckeys) ||
        (r.interactive && !may_cancel("job_id=" + shown_id(row.row), row.row)))
      continue;
    proto::JobRef ref{row.row.job, {}};
    if (const auto rest = parse_index_ranges(row.row.array_tasks)) ref.tasks = rest->ranges;
    // A task that has not started has no id of its own, only the array's.
    if (row.row.array_task && row.row.job == row.row.array_job)
      ref.tasks = {{*row.row.array_task, *row.row.array_task, 1}};
    chosen.push_back(std::move(ref));
  }
  r.filter() = {};
  r.filter().jobs = std::move(chosen);
  r.me = false;
  return !r.filter().jobs.empty();
}

int scancel_error(const Error& error) {
  return refused("slurm_load_jobs error: {}\n", words_for(error).text);
}

Result<int> run_scancel(const Invocation& call) {
  ScancelRequest r;
  int status = 0;
  const auto operands = parse_into(call, &r, status);
  if (!operands) return status;
  if (!add_scancel_jobs(call, *operands, r)) return 1;
  if (names_no_job(r)) return complain(call, "No job identification provided");
  for (const std::string& user : r.filter().users)
    if (::getpwnam(user.c_str()) == nullptr &&
        user.find_first_not_of("0123456789") != std::string::npos) {
      return complain(call, "Invalid user name: " + user);
    }
  std::string named;
  if (!check_clusters(call, r.clusters, named, status)) return status;
  status = signal_steps(call, r);
  if (only_steps(r)) return status;
  const ScancelRequest asked = r;
  if (!leaves_choice(r)) {
    const auto left = choose_jobs(r, status);
    if (!left) return scancel_error(left.error());
    if (!*left) {
      say_none(call, asked);
      return status;
    }
  }
  settle_signal(r);
  const auto reply = ask<proto::JobsDone>("scancel", r.cancel);
  if (!reply) return scancel_error(reply.error());
  if (r.verbose && !r.quiet)
    for (const proto::JobRef& ref : r.filter().jobs) say_signal(r, "job", format_job_ref(ref));
  for (const proto::JobRef& ref : reply->not_active) {
    if (is_choosy(asked) || r.verbose) say_gone(r, ref);
    if (is_choosy(asked)) status = 1;
  }
  for (const auto& refused : reply->refused)
    if (!r.quiet)
      complain(call, fmt::format("Kill job error on job id {}: {}", format_job_ref(refused.job),
                                 words_for(to_error(refused.error)).text));
  return reply->refused.empty() ? status : 1;
}

}  // namespace

extern const Command kScancel;
const Command kScancel{
    {"scancel", "Cancel jobs, or send them a signal", "[JOB[.STEP]...]"},
    {.description =
         "Slurm's scancel, over gcancel. Ends the jobs that are named or that meet all the "
         "conditions given: SIGTERM and SIGCONT to every process, and SIGKILL when the time that "
         "the cluster allows is over. With --signal nothing is ended.",
     .options = kScancelOptions,
     .examples = {{"scancel 12 15_3 16_[4-9]", "A job, an array task, some tasks of an array"},
                  {"scancel 12.3", "End step 3 of job 12, and nothing else"},
                  {"scancel --me -t PENDING", "All my jobs that have not started"},
                  {"scancel -s USR1 -b 12", "Send SIGUSR1 to the batch shell of job 12"}},
     .exits = {{"0",
                "done; also when a job that is named by its id alone had ended or never existed"},
               {"1",
                "a job belongs to someone else; one that is named beside a signal or a condition "
                "neither "
                "waits nor runs; the command line is wrong, or no answer"}},
     .run = run_scancel,
     .env_prefixes = kScancelPrefixes}};

}  // namespace gantry::cli::slurm
