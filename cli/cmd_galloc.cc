// galloc: asks for an allocation and runs a command (or a shell) here while it lasts; grun in it
// starts steps on the allocated nodes.
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/allocation.h"
#include "cli/command.h"
#include "cli/job_gpu_table.h"
#include "cli/job_option_table.h"
#include "common/hostlist.h"

namespace gantry::cli {
namespace {

constexpr Option kOwnOptions[] = {
    {.name = "quiet",
     .letter = 'Q',
     .help = "Print nothing but errors",
     .set = put<&JobRequest::quiet>},
    {.name = "no-shell", .refused = "an allocation lives as long as its command"},
    {.name = "x11", .refused = "X11 is not forwarded"},
};
constexpr auto kOptions =
    join(kOwnOptions, kJobOptions, kPlaceOptions, kGpuOptions, kRefusedJobOptions);

constexpr std::string_view kPrefixes[] = {"SALLOC_", "GALLOC_"};

constexpr Example kExamples[] = {
    {"galloc -N 2 -n 8 -t 1:00:00", "A shell with eight tasks' worth of two nodes for an hour"},
    {"galloc -n 4 grun -l hostname", "A command instead of a shell"},
};
constexpr ExitDoc kExits[] = {
    {"N", "the exit code of the command or shell; 128 + the signal that ended it"},
    {"1", "the allocation was refused, or given up while waiting"},
    {"2", "the command line is wrong"},
};

// What scripts and grun expect in an allocation (slurm-like names and ours).
void set_environment(const proto::JobRow& row, const JobRequest& request) {
  const auto set = [](const std::string& name, const std::string& value) {
    ::setenv(("SLURM_" + name).c_str(), value.c_str(), 1);
    ::setenv(("GANTRY_" + name).c_str(), value.c_str(), 1);
  };
  set("JOB_ID", std::to_string(row.job.value()));
  ::setenv("SLURM_JOBID", std::to_string(row.job.value()).c_str(), 1);
  set("JOB_NAME", row.name);
  set("JOB_NODELIST", row.node_list);
  ::setenv("SLURM_NODELIST", row.node_list.c_str(), 1);
  set("JOB_NUM_NODES", std::to_string(row.nodes));
  ::setenv("SLURM_NNODES", std::to_string(row.nodes).c_str(), 1);
  set("JOB_PARTITION", row.partition);
  set("SUBMIT_DIR", request.spec.work_dir);
  const JobShape& shape = request.spec.shape;
  for (const std::string& given : request.spec.given) {
    if (given == "ntasks") set("NTASKS", std::to_string(shape.tasks));
    if (given == "cpus-per-task") set("CPUS_PER_TASK", std::to_string(shape.cpus_per_task));
    if (given == "ntasks-per-node") set("NTASKS_PER_NODE", std::to_string(*shape.tasks_per_node));
  }
}

Result<int> run_here(std::vector<std::string> command) {
  if (command.empty()) {
    const char* shell = std::getenv("SHELL");
    command.emplace_back(shell != nullptr && *shell != 0 ? shell : "/bin/sh");
  }
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  // The terminal's signals are the command's: we stay to give the allocation back.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorCode::io_error, fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGQUIT, SIG_DFL);
    ::execvp(argv[0], argv.data());
    fmt::print(stderr, "galloc: error: {}: {}\n", command[0], std::strerror(errno));
    ::_exit(errno == ENOENT ? 127 : 126);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Result<int> run(const Invocation& invocation) {
  auto parsed = invocation.parse_only();
  if (!parsed) return tl::unexpected(parsed.error());
  if (!*parsed) return 0;
  JobRequest request;
  request.now = system_now();
  auto given = options_from_environment(kOptions, kPrefixes);
  given.insert(given.end(), (*parsed)->given.begin(), (*parsed)->given.end());
  if (auto done = apply_options(given, &request); !done) return tl::unexpected(done.error());
  if (auto done = finish_request(request, given); !done) return tl::unexpected(done.error());

  auto session = Session::open(invocation.program());
  if (!session) return tl::unexpected(session.error());
  auto allocation = Allocation::ask(invocation, request, *session);
  if (!allocation) return tl::unexpected(allocation.error());
  if (!request.quiet)
    fmt::print(stderr, "{}: Granted job allocation {} on {}\n", invocation.program(),
               allocation->job().value(), allocation->row().node_list);
  set_environment(allocation->row(), request);
  auto status = run_here((*parsed)->operands);
  // The session has been idle for as long as the shell lived: a fresh one is safer.
  auto again = Session::open(invocation.program());
  allocation->end(again ? *again : *session,
                  status ? ExitStatus{*status & 0xff, 0} : ExitStatus{1, 0});
  if (!request.quiet)
    fmt::print(stderr, "{}: Relinquishing job allocation {}\n", invocation.program(),
               allocation->job().value());
  return status;
}

}  // namespace

extern const Command kGalloc;
const Command kGalloc{
    .name = "galloc",
    .summary = "Get an allocation and run a command or a shell in it",
    .operands = "[COMMAND [ARGUMENT...]]",
    .description =
        "Waits for nodes, then runs COMMAND (or your shell) here, with the allocation in its "
        "environment: grun in it starts tasks on the allocated nodes. The nodes are given back "
        "when "
        "the command ends.",
    .options = kOptions,
    .examples = kExamples,
    .exits = kExits,
    .run = run,
    .stop_at_operand = true,
    .env_prefixes = kPrefixes,
};

}  // namespace gantry::cli
