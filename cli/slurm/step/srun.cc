// srun: runs tasks on the nodes of a job, as Slurm's does. Inside a job it starts a step of that
// job. Outside it asks for an allocation, runs the step there, and gives the allocation back.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/client_config.h"
#include "cli/random_id.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/step/srun_bcast.h"
#include "cli/slurm/step/srun_inside.h"
#include "cli/slurm/step/srun_parts.h"
#include "cli/slurm/step/srun_program.h"
#include "cli/slurm/step/srun_table.h"
#include "cli/slurm/submit/modest_options.h"
#include "cli/step/allocation.h"
#include "cli/step/allocation_shell.h"
#include "cli/step/step_run.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

extern char** environ;  // declared by POSIX

namespace gantry::cli::slurm {

namespace srun {
namespace {
Result<void> wrong_value(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}
}  // namespace

Result<void> set_jobid(SrunRequest& r, std::string_view text) {
  const auto job = parse_job_ref(text);
  if (!job || !job->tasks.empty()) return wrong_value(fmt::format("\"{}\" is not one job", text));
  r.job_id = job->id();
  return {};
}
Result<void> set_input(SrunRequest& r, std::string_view text) {
  r.input_file.clear();
  r.std_in.clear();
  r.input = text == "none" ? StepInput::none : StepInput::all_tasks;
  if (text == "none" || text == "all") return {};
  if (text.empty()) return wrong_value("\"\": give a file, a task's number, all or none");
  if (text.find_first_not_of("0123456789") != std::string_view::npos) {
    const bool is_pattern = text.find('%') != std::string_view::npos;
    (is_pattern ? r.std_in : r.input_file) = text;  // with a pattern each task has its own file
    if (is_pattern) r.input = StepInput::none;
    return {};
  }
  ASSIGN(rank, parse_integer("the task that reads standard input", text, 0, 65'535));
  r.input = StepInput::one_task;
  r.input_rank = static_cast<std::uint32_t>(*rank);
  return {};
}
Result<void> set_open_mode(SrunRequest& r, std::string_view text) {
  if (text != "append" && text != "a" && text != "truncate" && text != "t")
    return wrong_value(fmt::format("\"{}\" is not append or truncate", text));
  r.open_mode = text.starts_with('a') ? OpenMode::append : OpenMode::truncate;
  return {};
}
Result<void> set_kill(SrunRequest& r, std::string_view text) {
  if (!text.empty() && text != "0" && text != "1")
    return wrong_value(fmt::format("\"{}\" is not 0 or 1", text));
  r.kill_on_bad_exit = text != "0";
  return {};
}
Result<void> set_wait(SrunRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the time to wait in seconds", text, 0, 31'536'000));
  r.patience_s = static_cast<std::uint32_t>(*n);
  return {};
}
Result<void> set_relative(SrunRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the number of the first node", text, 0, 65'535));
  r.relative = static_cast<std::uint32_t>(*n);
  return {};
}
Result<void> set_mpi(SrunRequest& r, std::string_view text) {
  const bool pmix = text == "pmix" || text == "pmix_v4";
  if (!pmix && text != "pmi2" && text != "none" && text != "list")
    return wrong_value(fmt::format(
        "\"{}\": there are pmix, pmi2 and none; launchers that start one daemon on each "
        "node work with none",
        text));
  r.list_mpi = text == "list";
  r.mpi = pmix             ? proto::StepMpi::pmix
          : text == "pmi2" ? proto::StepMpi::pmi2
                           : proto::StepMpi::none;
  return {};
}

}  // namespace srun

namespace {

constexpr auto kSrunAll = join(kSrunOptions, kSlurmJobOptions, kSlurmRefused);
constexpr std::string_view kSrunPrefixes[] = {"SLURM_"};

// Options of jobs that may also come from variables; inside a job, the job has set them.
constexpr std::string_view kVariables[] = {"cpus-per-gpu", "distribution", "gpu-freq", "mem-bind",
                                           "overcommit"};

// The values of -o and -e that are not a file: none, all, or the number of one task, whose output
// is shown here.
void choose_output(std::string& pattern, std::optional<std::uint32_t>& only) {
  if (pattern == "none") pattern = "/dev/null";
  if (pattern == "all") pattern.clear();
  if (pattern.empty() || pattern.find_first_not_of("0123456789") != std::string::npos) return;
  const auto rank = parse_integer("the task", pattern, 0, 65'535);
  if (!rank) return;
  only = static_cast<std::uint32_t>(*rank);
  pattern.clear();
}

void choose_outputs(SrunRequest& r) {
  choose_output(r.std_out, r.only_output);
  choose_output(r.std_err, r.only_error);
}

bool reads_stdin_from(const Invocation& call, const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::dup2(fd, STDIN_FILENO) < 0) {
    complain(call, fmt::format("Could not open stdin file {}: {}", file, std::strerror(errno)));
    return false;
  }
  ::close(fd);
  return true;
}

bool options_agree(const Invocation& call, const SrunRequest& r, bool exclusive) {
  const bool files =
      !r.std_out.empty() || !r.std_err.empty() || !r.input_file.empty() || !r.std_in.empty();
  const char* wrong = nullptr;
  if (r.terminal && (files || r.label || r.input == StepInput::none))
    wrong = "--pty: a terminal is input and output; leave --input, --output, --error and --label";
  if (exclusive && r.overlap) wrong = "--exclusive and --overlap exclude each other";
  if (wrong != nullptr) complain(call, wrong);
  return wrong == nullptr;
}

// --cpus-per-gpu in a job: a task gets this many cores for each of its GPUs: those of
// --gpus-per-task, or its part of the step's GPUs, which are the job's if the step names none.
void settle_cpus_per_gpu(SrunRequest& r, const std::string& group) {
  if (!r.cpus_per_gpu || r.spec.given.cpus_per_task) return;
  const auto said = [&](const char* name) { return number_of_env((name + group).c_str()); };
  std::uint32_t gpus = r.gpus.per_task ? *r.gpus.per_task / 1000 : 0;
  if (gpus == 0) gpus = said("SLURM_GPUS_PER_TASK").value_or(0);
  if (gpus == 0) {
    const std::uint32_t nodes = r.nodes ? r.nodes->first : said("SLURM_JOB_NUM_NODES").value_or(1);
    const std::uint32_t tasks = r.tasks ? *r.tasks : said("SLURM_NTASKS").value_or(nodes);
    const std::uint32_t here = r.spec.shape.tasks_per_node.value_or((tasks + nodes - 1) / nodes);
    std::uint32_t all = r.gpus.per_node.value_or(0) / 1000;
    if (all == 0) all = (r.gpus.in_all.value_or(0) / 1000 + nodes - 1) / nodes;
    if (all == 0) all = said("SLURM_GPUS_ON_NODE").value_or(0);
    gpus = all / std::max(here, 1u);
  }
  if (gpus == 0) return;
  r.spec.shape.cpus_per_task = *r.cpus_per_gpu * gpus;
  r.spec.given.cpus_per_task = true;
}

// The environment of a step. --export decides what of the present environment is passed on; the
// job's own variables always are.
std::map<std::string, std::string> step_environment_of(const SrunRequest& r) {
  std::map<std::string, std::string> out = job_environment(r.exported);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with("SLURM_") && !text.starts_with("GANTRY_")) continue;
    out.try_emplace(std::string(text.substr(0, equals)), text.substr(equals + 1));
  }
  for (const char* name : kTokenVariables) out.erase(name);  // secrets, as in job_environment()
  put_bind_variables(r, out);
  // Tasks get the variable for -c only if -c was given, to the job or here.
  if (r.spec.given.cpus_per_task)
    out["SLURM_CPUS_PER_TASK"] = std::to_string(r.spec.shape.cpus_per_task);
  return out;
}

// Outside of a job SLURM_NTASKS and SLURM_NPROCS act like -n. Inside they are the job's.
void add_task_count(std::vector<Given>& given) {
  const auto is_tasks = [](const Option& option) { return option.name == "ntasks"; };
  for (const char* name : {"SLURM_NPROCS", "SLURM_NTASKS"})
    if (const char* text = std::getenv(name); text != nullptr && *text != 0)
      given.push_back({&*std::find_if(kSrunAll.begin(), kSrunAll.end(), is_tasks), text, name});
}

// Reads the options of one part. `group` is the suffix of the variables that describe the job or
// its component.
bool read_srun_options(const Invocation& call, const Parsed& parsed, SrunRequest& r, bool inside,
                       const std::string& group, int& status) {
  r.now = system_now();
  r.manner = Manner::slurm;
  r.inside = inside;
  r.input = StepInput::all_tasks;
  status = 1;
  std::vector<Given> typed = parsed.given;
  bool exclusive = false;
  if (inside && !keep_step_options(call, typed, exclusive)) return false;
  auto given = options_from_environment(kSrunAll, kSrunPrefixes);
  // Most SLURM_ variables inside a job describe the job. Only those about srun itself are used as
  // options.
  if (inside)
    std::erase_if(given, [](const Given& one) {
      return !is_srun_option(*one.option) && std::find(std::begin(kVariables), std::end(kVariables),
                                                       one.option->name) == std::end(kVariables);
    });
  if (!inside) add_task_count(given);
  given.insert(given.end(), typed.begin(), typed.end());
  if (!apply(call, given, static_cast<JobRequest*>(&r), status)) return false;
  list_options(call, given);
  if (!options_agree(call, r, exclusive)) return false;
  choose_outputs(r);
  if (r.terminal) r.input = StepInput::first_task;
  r.exact = r.exact || exclusive;
  const bool exported = std::any_of(typed.begin(), typed.end(),
                                    [](const Given& g) { return g.option->name == "export"; });
  if (const char* rule = std::getenv("SLURM_EXPORT_ENV"); rule != nullptr && !exported)
    if (auto done = job::set_export(r, rule); !done) {
      complain(call, "SLURM_EXPORT_ENV: " + done.error().message);
      return false;
    }
  if (inside && !set_relative_nodes(call, r, group)) return false;
  if (inside) take_tasks_of_node_info(r, group);
  auto done = before_finish(call, r, given);
  // The GPUs of a step are chosen from its job's, so they need not be the same on each node.
  const GpuWish of_step = inside ? std::exchange(r.gpus, {}) : GpuWish{};
  if (done) done = finish_request(r, given);
  if (done && !inside) done = after_finish(r);
  if (done && inside) done = check_step_gpus(of_step);
  if (inside) r.gpus = of_step;
  if (!done) {
    complain(call, done.error().message);
    return false;
  }
  if (inside) settle_cpus_per_gpu(r, group);
  if (inside && group.empty()) widen_launchers(r);
  return true;
}

int allocation_error(const Invocation& call, const Error& error) {
  if (error.message.starts_with("Job allocation "))
    return refused("{}: {}\n", call.program(), error.message);
  const Words words = words_for(error);
  if (!words.detail.empty()) complain(call, words.detail);
  return complain(call, "Unable to allocate resources: " + words.text);
}

int step_error(const Invocation& call, JobId job, const Error& error) {
  if (error.message.starts_with("Could not open ")) return complain(call, error.message);
  unsigned asked = 0, held = 0;
  if (std::sscanf(error.message.c_str(), "the step asks for %u nodes, job %*s has %u", &asked,
                  &held) == 2) {
    return complain(call, fmt::format("Only allocated {} nodes asked for {}", held, asked));
  }
  const Words words = words_for(error);
  if (!words.detail.empty()) complain(call, words.detail);
  return complain(call,
                  fmt::format("Unable to create step for job {}: {}", job.value(), words.text));
}

int test_srun(const Invocation& call, const SrunRequest& r, Session& session) {
  proto::SubmitJob message;
  message.request_id = random_id();
  message.spec = r.spec;
  message.spec.kind = JobKind::allocation;
  message.spec.submit_line = call.line();
  message.test_only = true;
  const auto reply = session.call<proto::SubmitReply>(message);
  if (!reply) return refused("allocation failure: {}\n", words_for(reply.error()).text);
  say_start(call.program(), *reply, r.now);
  return 0;
}

// One part of the command line in one component of the job.
struct SrunPart {
  SrunRequest request;
  std::vector<std::string> argv;
  std::optional<std::uint32_t> group;
};

bool parts_agree(const Invocation& call, const std::vector<SrunPart>& parts) {
  if (parts.size() < 2) return true;
  const SrunRequest& first = parts.front().request;
  const char* wrong = nullptr;
  if (first.terminal) wrong = "--pty is not supported over several components";
  if (first.mpi == proto::StepMpi::pmix)
    wrong = "--mpi=pmix is not supported over several components";
  if (first.mpi == proto::StepMpi::pmi2)
    wrong = "--mpi=pmi2 is not supported over several components";
  if (first.test_only) wrong = "--test-only is not supported for several components";
  if (wrong != nullptr) complain(call, wrong);
  return wrong == nullptr;
}

// Ranks count through the components in the components' order, whatever the order of the command
// line. Options for srun itself are in the first typed part.
void order_by_component(std::vector<SrunPart>& parts) {
  const StepOptions typed = parts.front().request;
  std::stable_sort(parts.begin(), parts.end(),
                   [](const SrunPart& a, const SrunPart& b) { return a.group < b.group; });
  StepOptions& first = parts.front().request;
  StepOptions merged = typed;
  static_cast<JobRequest&>(merged) = first;
  merged.quiet = typed.quiet;
  merged.verbose = typed.verbose;
  merged.overlap = first.overlap;
  merged.exact = first.exact;
  merged.all_cores = first.all_cores;
  merged.std_out = first.std_out;
  merged.std_err = first.std_err;
  merged.gpu_bind = first.gpu_bind;
  first = merged;
}

// Returns nullopt if the command line is wrong; `status` is then the exit status of srun.
std::optional<std::vector<SrunPart>> read_parts(const Invocation& call,
                                                const std::vector<Parsed>& typed, bool inside,
                                                int& status) {
  status = 1;
  const auto groups = groups_of(call, typed, inside);
  if (!groups) return std::nullopt;
  std::vector<SrunPart> parts;
  for (std::size_t i = 0; i < typed.size(); ++i)
    for (const auto& group : (*groups)[i]) {
      SrunPart part{{}, {}, group};
      if (!read_srun_options(call, typed[i], part.request, inside, behind_names(group), status))
        return std::nullopt;
      parts.push_back(std::move(part));
      if (parts.front().request.list_mpi) return parts;
      const auto said = std::find_if(typed.begin() + static_cast<std::ptrdiff_t>(i), typed.end(),
                                     [](const Parsed& p) { return !p.operands.empty(); });
      if (said == typed.end()) {
        fmt::print(stderr, "srun: fatal: No command given to execute.\n");
        status = 1;
        return std::nullopt;
      }
      auto argv = program_of(call, parts.back().request, said->operands);
      status = 1;
      if (!argv) return std::nullopt;
      parts.back().argv = std::move(*argv);
    }
  if (!parts_agree(call, parts)) return std::nullopt;
  // As in Slurm a part writes to the same place as the first one, unless it has its own options.
  for (SrunPart& part : parts) {
    const SrunRequest& first = parts.front().request;
    if (part.request.std_out.empty() && !part.request.only_output)
      part.request.std_out = first.std_out;
    if (part.request.std_err.empty() && !part.request.only_error)
      part.request.std_err = first.std_err;
  }
  order_by_component(parts);
  return parts;
}

Result<int> run_parts(const Invocation& call, std::vector<SrunPart>& parts, JobId job,
                      Session& session) {
  std::vector<std::optional<std::uint32_t>> groups;
  for (const SrunPart& part : parts) groups.push_back(part.group);
  const auto jobs = jobs_of(groups, job, session);
  if (!jobs && jobs.error().code == ErrorCode::usage) return complain(call, jobs.error().message);
  if (!jobs) return tl::unexpected(jobs.error());
  std::vector<StepPart> steps;
  const auto nodes = nodes_of_components(groups);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    SrunRequest& r = parts[i].request;
    fill_with_tasks(r, behind_names(parts[i].group));
    if (!broadcast_program(call, r, (*jobs)[i], parts[i].argv)) return 1;
    auto environment = step_environment_of(r);
    for (const auto& [name, value] : nodes) environment[name] = value;
    steps.push_back({{call.program(), parts[i].argv, std::move(environment)},
                     r,
                     (*jobs)[i],
                     behind_names(parts[i].group)});
  }
  const SrunRequest& first = parts.front().request;
  if (first.verbose) say_job(call, job);
  say_gpu_clocks(first);
  run_beside(call, first.prolog, parts.front().argv);
  auto done = run_step(std::move(steps), session);
  run_beside(call, first.epilog, parts.front().argv);
  return done;
}

Result<int> run_with_allocation(const Invocation& call, std::vector<SrunPart>& parts,
                                Session& session) {
  std::vector<const JobRequest*> requests;
  for (SrunPart& part : parts) {
    std::string& name = part.request.spec.name;
    if (name.empty()) name = part.argv[0].substr(part.argv[0].rfind('/') + 1);
    requests.push_back(&part.request);
  }
  const SrunRequest& r = parts.front().request;
  if (r.test_only) return test_srun(call, r, session);
  auto allocation = Allocation::ask(call, requests, session);
  if (!allocation) return allocation_error(call, allocation.error());
  set_allocation_environment(allocation->row(), r);
  auto known = set_allocation_geometry(session, allocation->job());
  if (known && parts.size() > 1) known = set_component_geometry(session, allocation->job());
  if (!known) complain(call, known.error().message);
  const auto done = run_parts(call, parts, allocation->job(), session);
  allocation->end(session, done ? ExitStatus{*done & 0xff, 0} : ExitStatus{1, 0});
  return done ? *done : step_error(call, allocation->job(), done.error());
}

Result<int> run_srun(const Invocation& call) {
  int status = 0;
  auto typed = parse_parts(call, status);
  if (!typed) return status;
  for (std::size_t i = 1; i < typed->size(); ++i)
    inherit_options((*typed)[i - 1].given, (*typed)[i].given);
  const auto& options = typed->front().given;
  const bool inside = number_of_env("SLURM_JOB_ID") ||
                      std::any_of(options.begin(), options.end(),
                                  [](const auto& o) { return o.option->name == "jobid"; });
  auto parts = read_parts(call, *typed, inside, status);
  if (!parts) return status;
  const SrunRequest& r = parts->front().request;
  if (r.list_mpi) {
    fmt::print(
        "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: "
        "pmix_v4\n");
    return 0;
  }
  std::string named;
  if (!check_clusters(call, r.clusters, named, status)) return status;
  if (!r.input_file.empty() && !reads_stdin_from(call, r.input_file)) return 1;
  auto session = Session::open(call.program());
  if (!session) return allocation_error(call, session.error());
  if (!inside) return run_with_allocation(call, *parts, *session);
  const auto done = run_parts(call, *parts, *surrounding_job(r), *session);
  return done ? *done : step_error(call, *surrounding_job(r), done.error());
}

}  // namespace

extern const Command kSrun;
const Command kSrun{
    {"srun", "Run tasks over the nodes of a job",
     "COMMAND [ARGUMENT...] [: [OPTION...] COMMAND [ARGUMENT...]]..."},
    {.description =
         "Slurm's srun, over grun. Inside a job, or with --jobid, COMMAND is started as a step: as "
         "many tasks as asked for, else as the job has, in block order over its nodes. Outside of "
         "a "
         "job an allocation is asked for first and given back at the end. Output of all tasks "
         "appears here as it comes; standard input and signals go to all tasks.\n\n"
         "Inside a job --mem, --time, --gres, --exclude and the like are those of the step, out of "
         "what the job has. Options that choose an allocation, as --partition, --account, --qos "
         "and "
         "--constraint, mean nothing there.\n\n"
         "In a heterogeneous job tasks are started in its first component, or in those that "
         "--het-group names, as one step with ranks that go through all of them. Commands with a : "
         "between them are for one component each; outside of a job they ask for such a job.",
     .options = kSrunAll,
     .examples = {{"srun -n 8 -l hostname",
                   "In a job: eight tasks over its nodes, lines with the task's number"},
                  {"srun --ntasks-per-node=1 -c 4 python3 train.py",
                   "One task with four cores on each node"},
                  {"srun --het-group=0 ./front : --het-group=1 -n 8 ./back",
                   "In a heterogeneous job: another program in each component, as one step"},
                  {"srun -n 1 -c 2 --mem=2G -t 10:00 ./test",
                   "Outside of a job: ask for an allocation, run, give it back"}},
     .exits = {{"0", "every task ended with 0"},
               {"N", "the largest exit code of the tasks; 128 + the signal that ended one"},
               {"1", "the step could not be started"},
               {"255", "the command line or a variable cannot be parsed"}},
     .run = run_srun,
     .stop_at_operand = true,
     .env_prefixes = kSrunPrefixes}};

}  // namespace gantry::cli::slurm
