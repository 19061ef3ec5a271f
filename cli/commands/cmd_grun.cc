// grun: runs tasks on the nodes of a job. Inside a job it starts a step of that job. Outside it
// asks for an allocation, runs the step there, and gives the allocation back.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/step/allocation.h"
#include "cli/step/allocation_shell.h"
#include "cli/step/step_option_table.h"
#include "cli/step/step_run.h"
#include "cli/submit/job_options.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::grun {
namespace {

Result<void> set_job_id(StepOptions& options, std::string_view value) {
  const auto job = parse_job_ref(value);
  if (!job || !job->tasks.empty())
    return fail(ErrorCode::usage, fmt::format("'{}' is not the id of one job", value));
  options.job_id = job->id();
  return {};
}

Result<void> set_input(StepOptions& options, std::string_view value) {
  if (value != "none" && value != "0")
    return fail(
        ErrorCode::usage,
        fmt::format("'{}': standard input goes to task 0 ('0', the default) or to 'none'", value));
  options.input = value == "none" ? StepInput::none : StepInput::first_task;
  return {};
}

Result<void> set_mpi(StepOptions& options, std::string_view value) {
  for (const auto& [mpi, name] : enum_names(proto::StepMpi{})) {
    if (name != value) continue;
    options.mpi = mpi;
    return {};
  }
  return fail(ErrorCode::usage, fmt::format("'{}': there are pmix, pmi2 and none", value));
}

constexpr Option kOnlyGrunOptions[] = {
    takes("input", 'i', "0|none", "Which task reads our standard input (default: task 0)",
          call<set_input>),
    takes("jobid", "JOB", "Run in this job of yours instead of the one we are in",
          call<set_job_id>),
    may_take("kill-on-bad-exit", 'K', "",
             "End all tasks when one ends with an exit code other than 0",
             put<&StepOptions::kill_on_bad_exit>),
    takes("mpi", "none|pmix|pmi2",
          "pmix, pmi2: a PMIx or PMI-1 and PMI-2 server beside the tasks on each node, and one "
          "task's failure ends all",
          call<set_mpi>),
    refuses("multi-prog", "one program per step; branch on SLURM_PROCID"),
    refuses("het-group", "srun has it"),
    refuses("x11", "X11 is not forwarded"),
};
constexpr auto kOwnOptions =
    in_order(Family::gantry,
             {"error", "input", "jobid", "gpu-bind", "kill-on-bad-exit", "label", "output",
              "overlap", "exact", "mpi", "multi-prog", "pty", "het-group", "x11"},
             kOnlyGrunOptions, kStepOptionTable);
constexpr auto kOptions = join(kOwnOptions, kJobOptions, kRefusedJobOptions);

constexpr std::string_view kPrefixes[] = {"SRUN_", "GRUN_"};

// Options that apply to a step. All other options only ask for an allocation.
constexpr std::string_view kStepWords[] = {"chdir",    "cpus-per-task",  "export",
                                           "job-name", "nodelist",       "nodes",
                                           "ntasks",   "ntasks-per-node"};

// Inside a job, an option that only an allocation can obey is refused instead of ignored.
Result<void> check_step_options(const std::vector<Given>& typed) {
  for (const Given& g : typed) {
    const bool own = std::any_of(std::begin(kOwnOptions), std::end(kOwnOptions),
                                 [&](const Option& o) { return o.name == g.option->name; });
    const bool step = std::find(std::begin(kStepWords), std::end(kStepWords), g.option->name) !=
                      std::end(kStepWords);
    if (!own && !step)
      return fail(ErrorCode::usage,
                  fmt::format("{} asks for an allocation; a step inside a job has the job's",
                              shown_name(*g.option)));
  }
  return {};
}

Result<int> run(const Invocation& invocation) {
  ASSIGN(parsed, invocation.parse_only());
  if (!*parsed) return 0;
  if ((*parsed)->operands.empty())
    return fail(ErrorCode::usage, "no command was given; for example: grun -n 4 hostname");

  StepOptions options;
  options.now = system_now();
  auto given = options_from_environment(kOptions, kPrefixes);
  given.insert(given.end(), (*parsed)->given.begin(), (*parsed)->given.end());
  TRY(apply_options(given, static_cast<JobRequest*>(&options)));
  TRY(finish_request(options, given));

  const bool files = !options.std_out.empty() || !options.std_err.empty();
  if (options.terminal && (files || options.label || options.input == StepInput::none))
    return fail(ErrorCode::usage,
                "--pty: a terminal is input and output; leave --input, --output, --error and "
                "--label");
  const auto job = surrounding_job(options);
  if (job) TRY(check_step_options((*parsed)->given));
  ASSIGN(session, Session::open(invocation.program()));
  const auto step = [&](JobId id) {
    return run_step({invocation.program(), (*parsed)->operands, job_environment(options.exported)},
                    options, *session, id);
  };
  if (job) return step(*job);

  ASSIGN(allocation, Allocation::ask(invocation, options, *session));
  set_allocation_environment(allocation->row(), options);
  auto status = step(allocation->job());
  allocation->end(*session, status ? ExitStatus{*status & 0xff, 0} : ExitStatus{1, 0});
  return status;
}

}  // namespace

extern const Command kGrun;
const Command kGrun{
    {"grun", "Run tasks over the nodes of a job", "COMMAND [ARGUMENT...]"},
    {.description =
         "Inside a job (or with --jobid) grun starts COMMAND as a step: as many tasks as asked "
         "for, "
         "in block order over the job's nodes, with the job's limits and inside its container. "
         "Outside of a job it asks for an allocation first and gives it back at the end.\n\n"
         "Steps that run side by side take different cores of the job while it has enough; beyond "
         "that they share cores, but for a step with --exact, which waits for cores of its own.\n\n"
         "Output of all tasks appears here as it comes; standard input goes to task 0; signals go "
         "to "
         "all tasks. Ctrl-C twice within a second ends the step.",
     .options = kOptions,
     .examples = {{"grun -n 8 -l hostname",
                   "In a job: eight tasks over its nodes, lines with the task's number"},
                  {"grun -N 2 --ntasks-per-node=1 -c 4 python3 train.py",
                   "One task with four cores on each of two nodes"},
                  {"grun -n 1 -c 2 --mem=2G -t 10:00 ./test",
                   "Outside of a job: ask for an allocation, run, give it back"}},
     .exits = {{"0", "every task ended with 0"},
               {"N", "the largest exit code of the tasks; 128 + the signal that ended one"},
               {"1", "the step could not be started"},
               {"2", "the command line is wrong"}},
     .run = run,
     .stop_at_operand = true,
     .env_prefixes = kPrefixes}};

}  // namespace gantry::cli::grun
