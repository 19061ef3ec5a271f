// grun: runs tasks over the nodes of a job. Inside a job it starts a step of it; outside it asks
// for an allocation, runs the step there, and gives the allocation back.
#include <fmt/core.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/allocation.h"
#include "cli/command.h"
#include "cli/job_gpu_table.h"
#include "cli/job_option_table.h"
#include "cli/session.h"
#include "cli/step_launch.h"
#include "cli/step_options.h"
#include "common/net/job_socket_client.h"
#include "common/text.h"

namespace gantry::cli {
namespace {

Result<void> set_job_id(StepOptions& options, std::string_view value) {
  const auto job = parse_job_ref(value);
  if (!job || !job->tasks.empty())
    return fail(ErrorCode::usage, fmt::format("'{}' is not the id of one job", value));
  options.job_id = job->job;
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

constexpr Option kOwnOptions[] = {
    {.name = "error",
     .letter = 'e',
     .arg = Arg::required,
     .value = "FILE",
     .help = "Standard error of the tasks, on their nodes: %j job, %s step, %t task, %N node "
             "(default: here)",
     .set = put<&StepOptions::std_err>},
    {.name = "input",
     .letter = 'i',
     .arg = Arg::required,
     .value = "0|none",
     .help = "Which task reads our standard input (default: task 0)",
     .set = call<set_input>},
    {.name = "jobid",
     .arg = Arg::required,
     .value = "JOB",
     .help = "Run in this job of yours instead of the one we are in",
     .set = call<set_job_id>},
    {.name = "kill-on-bad-exit",
     .letter = 'K',
     .arg = Arg::optional,
     .value = "",
     .help = "End all tasks when one ends with an exit code other than 0",
     .set = put<&StepOptions::kill_on_bad_exit>},
    {.name = "label",
     .letter = 'l',
     .help = "Put the number of the task in front of each line",
     .set = put<&StepOptions::label>},
    {.name = "output",
     .letter = 'o',
     .arg = Arg::required,
     .value = "FILE",
     .help = "Standard output of the tasks, on their nodes (default: here)",
     .set = put<&StepOptions::std_out>},
    {.name = "overlap",
     .help = "Share cores with other steps of the job, even if others are free",
     .set = put<&StepOptions::overlap>},
    {.name = "exact",
     .help = "Just the cores that its tasks ask for, which is always so",
     .set = put<&StepOptions::exact>},
    {.name = "mpi",
     .arg = Arg::required,
     .value = "none",
     .refused = "there is no PMI yet; use a launcher that starts one process per task"},
    {.name = "multi-prog", .refused = "one program per step; branch on SLURM_PROCID"},
    {.name = "pty", .refused = "terminals are not passed on yet"},
    {.name = "het-group", .refused = "there are no heterogeneous jobs"},
    {.name = "x11", .refused = "X11 is not forwarded"},
};
constexpr auto kOptions =
    join(kOwnOptions, kJobOptions, kPlaceOptions, kGpuOptions, kRefusedJobOptions);

constexpr std::string_view kPrefixes[] = {"SRUN_", "GRUN_"};

constexpr Example kExamples[] = {
    {"grun -n 8 -l hostname", "In a job: eight tasks over its nodes, lines with the task's number"},
    {"grun -N 2 --ntasks-per-node=1 -c 4 python3 train.py",
     "One task with four cores on each of two nodes"},
    {"grun -n 1 -c 2 --mem=2G -t 10:00 ./test",
     "Outside of a job: ask for an allocation, run, give it back"},
};
constexpr ExitDoc kExits[] = {
    {"0", "every task ended with 0"},
    {"N", "the largest exit code of the tasks; 128 + the signal that ended one"},
    {"1", "the step could not be started"},
    {"2", "the command line is wrong"},
};

std::optional<std::uint32_t> number_of_env(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return std::nullopt;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*end != 0 || value == 0 || value > 1'000'000) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

// The job whose step this is: --jobid, or the one we run in.
std::optional<JobId> surrounding_job(const StepOptions& options) {
  if (options.job_id) return options.job_id;
  if (const auto id = number_of_env("SLURM_JOB_ID")) return JobId(*id);
  return std::nullopt;
}

// Sizes: as given, else the job's from its environment (Slurm's rule).
proto::StepShape step_shape(const StepOptions& options) {
  const JobRequest& r = options;
  proto::StepShape shape;
  shape.overlap = options.overlap;
  shape.nodelist = r.spec.shape.required_nodes;
  shape.tasks_per_node = r.spec.shape.tasks_per_node;
  if (r.nodes) shape.nodes = r.nodes->first;
  if (r.tasks) shape.tasks = *r.tasks;
  const bool sized = r.tasks || r.nodes || shape.tasks_per_node;
  if (!sized) {
    shape.nodes = number_of_env("SLURM_JOB_NUM_NODES").value_or(0);
    shape.tasks = number_of_env("SLURM_NTASKS").value_or(0);
    shape.tasks_per_node = number_of_env("SLURM_NTASKS_PER_NODE");
  }
  const auto& given = r.spec.given;
  if (std::find(given.begin(), given.end(), "cpus-per-task") != given.end())
    shape.cpus_per_task = r.spec.shape.cpus_per_task;
  else
    shape.cpus_per_task = number_of_env("SLURM_CPUS_PER_TASK").value_or(0);
  return shape;
}

Result<int> run_step(const Invocation& invocation, const StepOptions& options, Session& session,
                     JobId job, std::vector<std::string> argv) {
  proto::StepCreate create;
  create.job = job;
  create.shape = step_shape(options);
  create.name =
      options.spec.name.empty() ? argv[0].substr(argv[0].rfind('/') + 1) : options.spec.name;
  auto granted = session.call<proto::StepGranted>(create);
  if (!granted && granted.error().code == ErrorCode::wrong_state) {
    // A script may be quicker than the news of its own start.
    proto::WaitJobs wait;
    wait.jobs.push_back({job, {}});
    wait.until_started = true;
    (void)session.call<proto::WaitReply>(wait, seconds(10));
    granted = session.call<proto::StepGranted>(create);
  }
  if (!granted) return tl::unexpected(granted.error());
  const auto permission = codec::decode<proto::StepPermission>(granted->permission);
  if (!permission) return tl::unexpected(permission.error());

  const char* job_socket = std::getenv(net::kJobSocketVariable);
  auto source = job_socket != nullptr ? listen_through_node(job_socket)
                                      : listen_for_streams(session.config().address);
  if (!source) return tl::unexpected(source.error());
  proto::LaunchStep launch;
  launch.permission = granted->permission;
  launch.signature = granted->signature;
  launch.argv = std::move(argv);
  launch.environment = job_environment(options.exported);
  launch.work_dir = options.spec.work_dir;
  launch.io_address = (*source)->address();
  launch.io_ticket = (*source)->ticket();
  launch.io_key.resize(net::kStreamKeyBytes);
  ::randombytes_buf(launch.io_key.data(), launch.io_key.size());
  launch.std_out = options.std_out;
  launch.std_err = options.std_err;
  launch.job_name = options.spec.name;

  proto::StepDone done;
  done.key = permission->key;
  done.step = permission->step;
  done.started = system_now();
  StepStreams streams(invocation.program(), *permission, launch.io_key, options);
  const auto launched = job_socket != nullptr
                            ? launch_through_node(job_socket, *permission, std::move(launch))
                            : launch_on_nodes(*permission, std::move(launch));
  Result<StepResult> result =
      launched ? streams.run(**source) : Result<StepResult>(tl::unexpected(launched.error()));
  done.ended = system_now();
  done.exit = result ? result->largest : ExitStatus{1, 0};
  if (result) done.usage = result->usage;
  const auto told = session.call<proto::Ok>(done);
  if (!result) return tl::unexpected(result.error());
  if (!told && told.error().code != ErrorCode::not_found)
    fmt::print(stderr, "{}: the step's end could not be recorded: {}\n", invocation.program(),
               told.error().message);
  return result->exit_status;
}

// Options that mean something to a step; the others ask for an allocation.
constexpr std::string_view kStepWords[] = {"chdir",    "cpus-per-task",  "export",
                                           "job-name", "nodelist",       "nodes",
                                           "ntasks",   "ntasks-per-node"};

// Inside a job an option that only an allocation could honour is refused, not ignored.
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
  auto parsed = invocation.parse_only();
  if (!parsed) return tl::unexpected(parsed.error());
  if (!*parsed) return 0;
  if ((*parsed)->operands.empty())
    return fail(ErrorCode::usage, "no command was given; for example: grun -n 4 hostname");

  StepOptions options;
  options.now = system_now();
  auto given = options_from_environment(kOptions, kPrefixes);
  given.insert(given.end(), (*parsed)->given.begin(), (*parsed)->given.end());
  if (auto done = apply_options(given, static_cast<JobRequest*>(&options)); !done)
    return tl::unexpected(done.error());
  if (auto done = finish_request(options, given); !done) return tl::unexpected(done.error());

  const auto job = surrounding_job(options);
  if (job)
    if (auto good = check_step_options((*parsed)->given); !good)
      return tl::unexpected(good.error());
  auto session = Session::open(invocation.program());
  if (!session) return tl::unexpected(session.error());
  if (job) return run_step(invocation, options, *session, *job, (*parsed)->operands);

  auto allocation = Allocation::ask(invocation, options, *session);
  if (!allocation) return tl::unexpected(allocation.error());
  auto status = run_step(invocation, options, *session, allocation->job(), (*parsed)->operands);
  allocation->end(*session, status ? ExitStatus{*status & 0xff, 0} : ExitStatus{1, 0});
  return status;
}

}  // namespace

extern const Command kGrun;
const Command kGrun{
    .name = "grun",
    .summary = "Run tasks over the nodes of a job",
    .operands = "COMMAND [ARGUMENT...]",
    .description =
        "Inside a job (or with --jobid) grun starts COMMAND as a step: as many tasks as asked for, "
        "in block order over the job's nodes, with the job's limits and inside its container. "
        "Outside of a job it asks for an allocation first and gives it back at the end.\n\n"
        "Steps that run side by side take different cores of the job while it has enough; beyond "
        "that they share cores, and no step waits for another.\n\n"
        "Output of all tasks appears here as it comes; standard input goes to task 0; signals go "
        "to "
        "all tasks. Ctrl-C twice within a second ends the step.",
    .options = kOptions,
    .examples = kExamples,
    .exits = kExits,
    .run = run,
    .stop_at_operand = true,
    .env_prefixes = kPrefixes,
};

}  // namespace gantry::cli
