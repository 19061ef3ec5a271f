#include "cli/step/step_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>

#include "cli/step/raw_terminal.h"
#include "cli/step/step_launch.h"
#include "common/net/job_socket_client.h"
#include "common/proto/job_text.h"
#include "common/proto/meeting_point.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

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

// Copies into the step what its options ask for, apart from its size.
void put_own(proto::StepShape& shape, const StepOptions& options) {
  constexpr std::uint32_t kOne = 1000;  // GpuWish counts in thousandths
  const auto whole = [](const std::optional<std::uint32_t>& thousandths) {
    return thousandths ? std::optional(*thousandths / kOne) : std::nullopt;
  };
  const JobRequest& r = options;
  shape.all_cores = options.all_cores;
  shape.excluded = r.spec.shape.excluded_nodes;
  shape.memory_per_node = r.spec.shape.memory_per_node.value_or(0);
  shape.memory_per_cpu = r.spec.shape.memory_per_cpu.value_or(0);
  shape.gpus = whole(r.gpus.in_all);
  shape.gpus_per_node = whole(r.gpus.per_node);
  shape.gpus_per_task = whole(r.gpus.per_task);
  shape.gpu_model = r.gpus.model;
  shape.time_limit = r.spec.time_limit.value_or(Duration{});
  if (!r.gpus.memory_each) return;
  const std::uint32_t nodes = std::max(shape.nodes, 1u);
  const std::uint32_t here = number_of_env("SLURM_GPUS_ON_NODE").value_or(0);
  const auto share = [&](std::uint32_t all) { return (all + nodes - 1) / nodes; };
  const std::uint32_t gpus = shape.gpus_per_node.value_or(0) > 0 ? *shape.gpus_per_node
                             : shape.gpus                        ? share(*shape.gpus)
                             : shape.gpus_per_task ? *shape.gpus_per_task * share(shape.tasks)
                                                   : here;
  shape.memory_per_node = *r.gpus.memory_each * gpus;
}

// Whether these are nodes of the surrounding job, whose variables have this suffix.
bool all_of_job(const std::vector<std::string>& nodes, const std::string& group) {
  const char* list = std::getenv(("SLURM_JOB_NODELIST" + group).c_str());
  const auto job = expand_hostlist(list == nullptr ? "" : list);
  return job && std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
           return std::find(job->begin(), job->end(), node) != job->end();
         });
}

// The sizes of the step: those given as options, else those of the job from its environment
// (Slurm's rule).
proto::StepShape step_shape(const StepOptions& options, const std::string& group) {
  const auto said = [&](const char* name) { return number_of_env((name + group).c_str()); };
  const JobRequest& r = options;
  proto::StepShape shape;
  shape.overlap = options.overlap;
  shape.overcommit = r.spec.shape.overcommit;
  shape.exclusive = options.exact && !options.overlap;
  shape.cyclic = r.spec.distribution && r.spec.distribution->nodes == NodeOrder::cyclic;
  if (r.spec.distribution) shape.plane = r.spec.distribution->plane;
  shape.pack = r.spec.distribution && r.spec.distribution->pack;
  shape.hosts = options.hosts;
  shape.nodelist = r.spec.shape.required_nodes;
  shape.tasks_per_node = r.spec.shape.tasks_per_node;
  if (r.nodes) shape.nodes = r.nodes->first;
  if (r.tasks) shape.tasks = *r.tasks;
  const bool sized = r.tasks || r.nodes || shape.tasks_per_node;
  // Slurm's step has as many nodes as the job, unless -N gives another number: -w names some of
  // them.
  if (!sized && options.manner == Manner::slurm && all_of_job(shape.nodelist, group))
    shape.nodelist.clear();
  if (!sized && !shape.nodelist.empty()) {  // on exactly these nodes
    shape.nodes = static_cast<std::uint32_t>(shape.nodelist.size());
    shape.tasks = std::max(said("SLURM_NTASKS").value_or(0), shape.nodes);
  } else if (!sized) {
    shape.nodes = said("SLURM_JOB_NUM_NODES").value_or(0);
    shape.tasks = said("SLURM_NTASKS").value_or(0);
    shape.tasks_per_node = said("SLURM_NTASKS_PER_NODE");
  }
  if (r.spec.given.cpus_per_task)
    shape.cpus_per_task = r.spec.shape.cpus_per_task;
  else
    shape.cpus_per_task = said("SLURM_CPUS_PER_TASK").value_or(0);
  shape.tres = r.spec.given.tres;
  if (options.inside) put_own(shape, options);
  return shape;
}

constexpr Duration kFirstPause = milliseconds(50);
constexpr Duration kLongestPause = seconds(1);
constexpr Duration kAtOnce = seconds(1);  // --immediate without a time: the step does not wait

// A step that wants cores of its own asks again until it gets them. The controller stores nothing
// about a refused step, so it cannot notify, and a step that gives up leaves nothing.
Result<proto::StepGranted> await_cores(const proto::StepCreate& create, const std::string& program,
                                       const StepOptions& options, Session& session,
                                       Result<proto::StepGranted> granted) {
  const auto most = options.inside ? options.most_wait : std::nullopt;
  const Instant begin = system_now();
  const auto too_long = [&] { return most && system_now() - begin >= *most; };
  const auto busy = [] { return fail(ErrorCode::unavailable, "Requested nodes are busy"); };
  if (most && *most <= kAtOnce) return busy();
  if (!options.quiet)
    fmt::print(stderr,
               "{}: Job {} step creation temporarily disabled, retrying (Requested nodes are "
               "busy)\n",
               program, create.job.value());
  for (Duration pause = kFirstPause; granted && granted->busy;
       pause = std::min(pause * 2, kLongestPause)) {
    const timespec nap{pause.us / 1'000'000, pause.us % 1'000'000 * 1'000};
    // tidy-allow(sleep): no event tells a waiting step that another step has ended
    ::nanosleep(&nap, nullptr);
    if (too_long()) return busy();
    granted = session.call<proto::StepGranted>(create);
  }
  return granted;
}

Result<proto::StepGranted> create_step(const proto::StepCreate& create, const std::string& program,
                                       const StepOptions& options, Session& session) {
  auto granted = session.call<proto::StepGranted>(create);
  if (!granted && granted.error().code == ErrorCode::wrong_state) {
    // A script may ask before the controller has heard that the job has started.
    proto::WaitJobs wait;
    wait.jobs.push_back({create.job, {}});
    wait.until_started = true;
    (void)session.call<proto::WaitReply>(wait, seconds(10));
    granted = session.call<proto::StepGranted>(create);
  }
  if (!granted || !granted->busy) return granted;
  granted = await_cores(create, program, options, session, std::move(granted));
  if (granted && !options.quiet) {
    const auto permission = codec::decode<proto::StepPermission>(granted->permission);
    if (permission)
      fmt::print(stderr, "{}: Step created for StepId={}.{}\n", program, create.job.value(),
                 permission->step.value());
  }
  return granted;
}

// As with Slurm's srun: without a terminal here, the step gets none either, and the user is told.
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
  if (!bind.empty()) out[kGpuBindVariable] = bind;
  if (gpus.per_task && *gpus.per_task >= 1000)  // a part of one GPU is the same for all tasks
    out.try_emplace(kGpuBindVariable, fmt::format("per_task:{}", *gpus.per_task / 1000));
  return out;
}

namespace {

// What the controller has granted for one part.
struct Made {
  proto::StepGranted granted;
  proto::StepPermission permission;
};

// `part_of`: the step of another component that this one is a part of.
Result<Made> make_step(const StepPart& part, std::optional<StepId> part_of, Session& session) {
  proto::StepCreate create;
  create.job = part.job;
  create.part_of = part_of;
  create.shape = step_shape(part.options, part.group);
  const std::string& first = part.command.argv[0];
  const std::string& name = part.options.spec.name;
  create.name = name.empty() ? first.substr(first.rfind('/') + 1) : name;
  ASSIGN(granted, create_step(create, part.command.program, part.options, session));
  ASSIGN(permission, codec::decode<proto::StepPermission>(granted->permission));
  return Made{std::move(*granted), std::move(*permission)};
}

Result<void> tell_end(const proto::StepPermission& permission, Instant started, const StepEnd& end,
                      Session& session) {
  proto::StepDone done;
  done.key = permission.key;
  done.step = permission.step;
  done.started = started;
  done.ended = system_now();
  done.exit = end.largest;
  done.usage = end.usage;
  done.timed_out = end.timed_out;
  const auto told = session.call<proto::Ok>(done);
  if (!told && told.error().code != ErrorCode::not_found) return tl::unexpected(told.error());
  return {};
}

constexpr StepEnd kNotStarted{{1, 0}, {}, false};

// Requests the steps in the order of their jobs, so that two callers that want cores of their own
// never wait for each other.
Result<std::vector<Made>> make_steps(const std::vector<StepPart>& parts, Session& session) {
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return parts[a].job < parts[b].job; });
  std::vector<Made> out(parts.size());
  std::optional<StepId> number;
  for (std::size_t n = 0; n < order.size(); ++n) {
    auto made = make_step(parts[order[n]], number, session);
    if (!made) {
      for (std::size_t i = 0; i < n; ++i)
        (void)tell_end(out[order[i]].permission, system_now(), kNotStarted, session);
      return tl::unexpected(made.error());
    }
    out[order[n]] = std::move(*made);
    number = out[order[n]].permission.step;
  }
  return out;
}

// Joins the permissions of all parts into one, for the streams.
proto::StepPermission joined(const std::vector<Made>& steps) {
  proto::StepPermission all = steps.front().permission;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    for (proto::StepNode node : steps[i].permission.nodes) {
      node.first_rank += all.tasks;
      for (std::uint32_t& rank : node.ranks) rank += all.tasks;
      all.nodes.push_back(std::move(node));
    }
    all.tasks += steps[i].permission.tasks;
  }
  return all;
}

bool has_meeting_point(const StepOptions& options) {
  return options.manner == Manner::gantry || options.meeting_point;
}

proto::LaunchStep launch_of(StepPart& part, const Made& made) {
  proto::LaunchStep launch;
  launch.permission = made.granted.permission;
  launch.signature = made.granted.signature;
  launch.argv = std::move(part.command.argv);
  launch.environment = std::move(part.command.environment);
  for (auto& [name, value] : task_gpu_variables(part.options.gpus, part.options.gpu_bind))
    launch.environment[name] = value;
  // The variable may be the job's own. An invalid one matters only on nodes where the step has
  // GPUs: such a node refuses it.
  if (const auto how = launch.environment.find(kGpuBindVariable); how != launch.environment.end())
    if (auto bind = parse_gpu_bind(how->second)) launch.gpu_bind = std::move(*bind);
  launch.work_dir = part.options.spec.work_dir;
  if (!StepFiles::are_here(part.options)) {
    launch.std_out = part.options.std_out;
    launch.std_err = part.options.std_err;
  }
  launch.std_in = part.options.std_in;
  launch.open_mode = part.options.open_mode;
  launch.limits = part.options.spec.limits;
  launch.keep_sizes = part.options.keep_sizes;
  launch.meeting_point = has_meeting_point(part.options);
  launch.job_name = part.options.spec.name;
  launch.mpi = part.options.mpi;
  launch.cpu_bind = part.options.cpu_bind;
  launch.mem_bind = part.options.mem_bind;
  if (const auto& distribution = part.options.spec.distribution) {
    launch.core_order = distribution->cores;
    launch.environment["SLURM_DISTRIBUTION"] = distribution_words(*distribution);
    launch.environment.erase("SLURM_DIST_PLANESIZE");
    if (distribution->plane > 0)
      launch.environment["SLURM_DIST_PLANESIZE"] = std::to_string(distribution->plane);
  }
  return launch;
}

// Where the tasks' streams are connected, as Slurm's tasks are told it.
void tell_address(proto::LaunchStep& launch) {
  const std::size_t colon = launch.io_address.rfind(':');
  const std::size_t begin = launch.io_address.find("//");
  if (colon == std::string::npos || begin == std::string::npos || begin + 2 > colon) return;
  launch.environment["SLURM_SRUN_COMM_HOST"] =
      launch.io_address.substr(begin + 2, colon - begin - 2);
  launch.environment["SLURM_SRUN_COMM_PORT"] = launch.io_address.substr(colon + 1);
}

void put_input(proto::LaunchStep& launch, const StepOptions& options) {
  if (options.input == StepInput::all_tasks) launch.input = proto::StepInputTo::all_tasks;
  if (options.input != StepInput::one_task) return;
  launch.input = proto::StepInputTo::one_task;
  launch.input_rank = options.input_rank;
}

// Tells the tasks of each part about the tasks of all parts. Their meeting point (MASTER_ADDR) is
// the node of the first task.
void number_through(std::vector<proto::LaunchStep>& launches, const std::vector<Made>& steps,
                    const proto::StepPermission& all) {
  proto::HetStep het;
  for (const proto::StepNode& node : all.nodes) {
    het.nodes.push_back(node.node);
    het.tasks.push_back(node.tasks);
  }
  for (std::size_t i = 0; i < launches.size(); ++i) {
    launches[i].het = het;
    het.first_rank += steps[i].permission.tasks;
    het.first_node += static_cast<std::uint32_t>(steps[i].permission.nodes.size());
    if (launches[i].meeting_point)
      launches[i].environment.merge(meeting_point(steps.front().permission));
  }
}

// Prints lines like those of Slurm's srun -v: "srun: launching StepId=12.0 on host n1, 2 tasks:
// 0-1".
void say_where(const std::string& program, const std::vector<Made>& steps) {
  for (const Made& made : steps)
    for (const proto::StepNode& node : made.permission.nodes) {
      std::vector<std::uint32_t> ranks;
      for (std::uint32_t i = 0; i < node.tasks; ++i) ranks.push_back(node.rank(i));
      fmt::print(stderr, "{}: launching StepId={}.{} on host {}, {} tasks: {}\n", program,
                 made.permission.key.job.value(), made.permission.step.value(), node.node,
                 node.tasks, format_index_ranges(compress_indexes(ranks)));
    }
}

Result<StepResult> run_made(std::vector<StepPart>& parts, const std::vector<Made>& steps,
                            const proto::StepPermission& all) {
  if (parts.front().options.verbose) say_where(parts.front().command.program, steps);
  StepFiles files;
  std::uint32_t first_rank = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].options.label = parts.front().options.label;
    ASSIGN(opened, files.open(parts[i].options, steps[i].permission, first_rank));
    first_rank += steps[i].permission.tasks;
  }
  ASSIGN(door, StepDoor::open(all));
  std::vector<proto::LaunchStep> launches;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    proto::LaunchStep& launch = launches.emplace_back(launch_of(parts[i], steps[i]));
    door->tell(launch);
    if (parts.front().options.manner == Manner::slurm) tell_address(launch);
    put_input(launch, parts.front().options);
  }
  const StepCommand& command = parts.front().command;
  StepOptions& options = parts.front().options;
  if (parts.size() > 1)
    number_through(launches, steps, all);
  else
    set_terminal(launches.front(), command, options);
  StepStreams streams(command.program, all, door->key(), options, &files);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    ASSIGN(launched, door->launch(steps[i].permission, std::move(launches[i]), options.at_a_time));
  }
  return streams.run(door->source());
}

}  // namespace

Result<int> run_step(std::vector<StepPart> parts, Session& session) {
  const std::string program = parts.front().command.program;
  ASSIGN(steps, make_steps(parts, session));
  const proto::StepPermission all = joined(*steps);
  const Instant started = system_now();
  const auto result = run_made(parts, *steps, all);
  std::size_t node = 0;
  for (const Made& made : *steps) {
    StepEnd end = result ? StepEnd{} : kNotStarted;
    for (std::size_t i = 0; i < made.permission.nodes.size(); ++i, ++node)
      if (result) end.add(result->nodes[node]);
    const auto told = tell_end(made.permission, started, end, session);
    if (result && !told)
      fmt::print(stderr, "{}: the step's end could not be recorded: {}\n", program,
                 told.error().message);
  }
  if (!result) return tl::unexpected(result.error());
  return result->exit_status;
}

Result<int> run_step(StepCommand command, StepOptions options, Session& session, JobId job) {
  std::vector<StepPart> parts;
  parts.push_back({std::move(command), std::move(options), job, ""});
  return run_step(std::move(parts), session);
}

void StepEndings::add(const std::string& node, std::uint32_t rank, const std::string& what,
                      std::int64_t now_us) {
  if (lines_.empty()) due_us_ = now_us + kMoment;
  auto line = std::find_if(lines_.begin(), lines_.end(),
                           [&](const Line& l) { return l.node == node && l.what == what; });
  if (line == lines_.end()) line = lines_.insert(lines_.end(), {node, what, {}});
  line->ranks.push_back(rank);
}

std::optional<std::int64_t> StepEndings::due_us() const {
  return lines_.empty() ? std::nullopt : std::optional(due_us_);
}

std::vector<std::string> StepEndings::take() {
  std::vector<std::string> out;
  for (Line& line : lines_) {
    std::sort(line.ranks.begin(), line.ranks.end());
    line.ranks.erase(std::unique(line.ranks.begin(), line.ranks.end()), line.ranks.end());
    out.push_back(fmt::format("{}: task{} {}: {}", line.node, line.ranks.size() > 1 ? "s" : "",
                              format_index_ranges(compress_indexes(line.ranks)), line.what));
  }
  lines_.clear();
  return out;
}

}  // namespace gantry::cli
