#include "cli/step_run.h"

#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "cli/raw_terminal.h"
#include "cli/step_launch.h"
#include "common/net/job_socket_client.h"

namespace gantry::cli {

std::optional<std::uint32_t> number_of_env(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return std::nullopt;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*end != 0 || value == 0 || value > 1'000'000) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

std::optional<JobId> surrounding_job(const StepOptions& options) {
  if (options.job_id) return options.job_id;
  if (const auto id = number_of_env("SLURM_JOB_ID")) return JobId(*id);
  return std::nullopt;
}

namespace {

// Sizes: as given, else the job's from its environment (Slurm's rule).
proto::StepShape step_shape(const StepOptions& options) {
  const JobRequest& r = options;
  proto::StepShape shape;
  shape.overlap = options.overlap;
  shape.exclusive = options.exact && !options.overlap;
  const auto& words = r.spec.given;
  shape.cyclic = std::find(words.begin(), words.end(), "distribution=cyclic") != words.end();
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

constexpr Duration kFirstPause = milliseconds(50);
constexpr Duration kLongestPause = seconds(1);

// A step that wants cores of its own asks again until it has them. Nobody calls it: the controller
// remembers no step that it has not made, so one that is given up leaves nothing behind.
Result<proto::StepGranted> await_cores(const proto::StepCreate& create, const std::string& program,
                                       bool quiet, Session& session,
                                       Result<proto::StepGranted> granted) {
  if (!quiet)
    fmt::print(stderr,
               "{}: Job {} step creation temporarily disabled, retrying (Requested nodes are "
               "busy)\n",
               program, create.job.value());
  for (Duration pause = kFirstPause; granted && granted->busy;
       pause = std::min(pause * 2, kLongestPause)) {
    const timespec nap{pause.us / 1'000'000, pause.us % 1'000'000 * 1'000};
    // tidy-allow(sleep): the end of a step is no event for who waits for its cores
    ::nanosleep(&nap, nullptr);
    granted = session.call<proto::StepGranted>(create);
  }
  return granted;
}

Result<proto::StepGranted> create_step(const proto::StepCreate& create, const std::string& program,
                                       bool quiet, Session& session) {
  auto granted = session.call<proto::StepGranted>(create);
  if (!granted && granted.error().code == ErrorCode::wrong_state) {
    // A script may be quicker than the news of its own start.
    proto::WaitJobs wait;
    wait.jobs.push_back({create.job, {}});
    wait.until_started = true;
    (void)session.call<proto::WaitReply>(wait, seconds(10));
    granted = session.call<proto::StepGranted>(create);
  }
  if (!granted || !granted->busy) return granted;
  granted = await_cores(create, program, quiet, session, std::move(granted));
  if (granted && !quiet) {
    const auto permission = codec::decode<proto::StepPermission>(granted->permission);
    if (permission)
      fmt::print(stderr, "{}: Step created for StepId={}.{}\n", program, create.job.value(),
                 permission->step.value());
  }
  return granted;
}

// As Slurm's srun: without a terminal here the step has none either, which is said.
void set_terminal(proto::LaunchStep& launch, const StepCommand& command, StepOptions& options) {
  if (!options.terminal) return;
  launch.terminal = terminal_size();
  options.terminal = launch.terminal.has_value();
  if (options.terminal) return;
  fmt::print(stderr,
             "{0}: error: ioctl(TIOCGWINSZ): {1}\n{0}: error: Not using a pseudo-terminal, "
             "disregarding --pty option\n",
             command.program, std::strerror(errno));
}

}  // namespace

std::map<std::string, std::string> task_gpu_variables(const GpuWish& gpus,
                                                      const std::string& bind) {
  std::map<std::string, std::string> out;
  if (!bind.empty()) out["SLURM_GPU_BIND"] = bind;
  if (gpus.per_task && *gpus.per_task >= 1000)  // a part of one is the same for all
    out.try_emplace("SLURM_GPU_BIND", fmt::format("per_task:{}", *gpus.per_task / 1000));
  return out;
}

Result<int> run_step(StepCommand command, StepOptions options, Session& session, JobId job) {
  proto::StepCreate create;
  create.job = job;
  create.shape = step_shape(options);
  const std::string& first = command.argv[0];
  create.name = options.spec.name.empty() ? first.substr(first.rfind('/') + 1) : options.spec.name;
  const auto granted = create_step(create, command.program, options.quiet, session);
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
  launch.argv = std::move(command.argv);
  launch.environment = std::move(command.environment);
  for (auto& [name, value] : task_gpu_variables(options.gpus, options.gpu_bind))
    launch.environment[name] = value;
  launch.work_dir = options.spec.work_dir;
  launch.io_address = (*source)->address();
  launch.io_ticket = (*source)->ticket();
  launch.io_key.resize(net::kStreamKeyBytes);
  ::randombytes_buf(launch.io_key.data(), launch.io_key.size());
  launch.std_out = options.std_out;
  launch.std_err = options.std_err;
  launch.job_name = options.spec.name;
  launch.mpi = options.mpi;
  set_terminal(launch, command, options);

  proto::StepDone done;
  done.key = permission->key;
  done.step = permission->step;
  done.started = system_now();
  StepStreams streams(command.program, *permission, launch.io_key, options);
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
    fmt::print(stderr, "{}: the step's end could not be recorded: {}\n", command.program,
               told.error().message);
  return result->exit_status;
}

}  // namespace gantry::cli
