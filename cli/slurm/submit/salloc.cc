// salloc: asks for an allocation and runs a command, or a shell, on this host while it lasts.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cli/slurm/frame.h"
#include "cli/slurm/submit/job_options.h"
#include "cli/slurm/submit/modest_options.h"
#include "cli/step/allocation.h"
#include "cli/step/allocation_shell.h"
#include "cli/step/step_run.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct SallocRequest : SlurmRequest {
  bool no_shell = false;
  bool bell = false;
  std::optional<int> kill_command;  // signal for the command at the end of the allocation
};

Result<void> set_kill_command(SallocRequest& r, std::string_view text) {
  r.kill_command = ::isatty(STDIN_FILENO) == 1 ? SIGHUP : SIGTERM;
  if (text.empty() || text == "1") return {};  // a variable only switches it on
  ASSIGN(signal, parse_signal(text));
  r.kill_command = *signal;
  return {};
}

constexpr Option kOnlySallocOptions[] = {
    flag("bell", "Ring the terminal's bell when the allocation is there", put<&SallocRequest::bell>)
        .from_env("BELL"),
    flag("help", 'h', "Show this help", always),
    may_take("kill-command", 'K', "SIGNAL",
             "If the allocation ends before the command, the command gets this signal (default "
             "SIGHUP with a terminal, else SIGTERM)",
             call<set_kill_command>)
        .from_env("KILL_CMD"),
    flag("no-bell", "No bell when the allocation is there",
         does<[](SallocRequest& r) { r.bell = false; }>)
        .from_env("NO_BELL"),
    flag("no-shell", "Run nothing: the job lives on without us, until its time limit or scancel",
         put<&SallocRequest::no_shell>),
    flag("verbose", 'v', "List the options that are in force; twice: and where each comes from",
         always)
        .from_env("DEBUG"),
    refuses("get-user-env", "the command has this environment"),
};
constexpr auto kSallocOwn =
    in_order(Family::slurm,
             {"bell", "help", "immediate", "kill-command", "no-bell", "no-shell", "quiet",
              "verbose", "wait-all-nodes", "get-user-env"},
             join(kOnlySallocOptions, kOnlySlurmOptions), kJobOptionTable);
constexpr auto kSallocOptions = join(kSallocOwn, kSlurmJobOptions, kSlurmRefused);
constexpr std::string_view kSallocPrefixes[] = {"SALLOC_"};

bool read_salloc_options(const Invocation& call, const Parsed& parsed, SallocRequest& r,
                         int& status) {
  r.now = system_now();
  auto given = options_from_environment(kSallocOptions, kSallocPrefixes);
  given.insert(given.end(), parsed.given.begin(), parsed.given.end());
  if (!apply(call, given, static_cast<JobRequest*>(&r), status)) return false;
  list_options(call, given);
  auto done = before_finish(call, r, given);
  if (done) done = finish_request(r, given);
  if (done) done = after_finish(r);
  if (done) return true;
  complain(call, done.error().message);
  status = 1;
  return false;
}

// One request for each component. If it is empty, `status` is the exit status of salloc.
std::vector<SallocRequest> read_components(const Invocation& call, const std::vector<Parsed>& parts,
                                           int& status) {
  std::vector<SallocRequest> requests(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!read_salloc_options(call, parts[i], requests[i], status)) return {};
    for (const Given& given : parts[i].given)
      if (i > 0 && (given.option->name == "no-shell" || given.option->name == "clusters")) {
        complain(call, fmt::format("{} is for the first component", shown_name(*given.option)));
        status = 1;
        return {};
      }
  }
  return requests;
}

void set_environment(const Invocation& call, const Allocation& allocation,
                     const std::vector<SallocRequest>& requests, Session& session) {
  const SallocRequest& r = requests.front();
  set_allocation_environment(allocation.row(), r);
  auto known = set_allocation_geometry(session, allocation.job());
  if (known && requests.size() > 1) known = set_component_geometry(session, allocation.job());
  if (!known) complain(call, known.error().message);
  for (const auto& [name, value] : task_gpu_variables(r.gpus, r.gpu_bind))
    ::setenv(name.c_str(), value.c_str(), 1);
  if (!r.mem_bind_text.empty()) ::setenv("SLURM_MEM_BIND", r.mem_bind_text.c_str(), 1);
  if (!r.gpu_freq.empty()) ::setenv("SLURM_GPU_FREQ", r.gpu_freq.c_str(), 1);
}

Result<int> run_salloc(const Invocation& call) {
  int status = 0;
  auto parts = parse_components(call, status);
  if (!parts) return status;
  for (std::size_t i = 1; i < parts->size(); ++i)
    inherit_options((*parts)[i - 1].given, (*parts)[i].given);
  auto requests = read_components(call, *parts, status);
  if (requests.empty()) return status;
  const SallocRequest& r = requests.front();
  const std::vector<std::string>& command = parts->back().operands;
  // As in Slurm only the last component is named after the command.
  std::string& name = requests.back().spec.name;
  if (name.empty() && !command.empty()) name = command[0].substr(command[0].rfind('/') + 1);
  if (r.no_shell && !command.empty())
    return complain(call, "--no-shell runs no command; leave it, or the command");
  std::string named;
  if (!check_clusters(call, r.clusters, named, status)) return status;
  const auto refuse = [&](const Error& error) {
    const Words words = words_for(error);
    if (!words.detail.empty()) complain(call, words.detail);
    const bool late = r.most_wait && error.message == "Requested nodes are busy";
    return complain(
        call,
        (late ? "Unable to allocate resources: " : "Job submit/allocate failed: ") + words.text);
  };
  auto session = Session::open(call.program());
  if (!session) return refuse(session.error());
  std::vector<const JobRequest*> asked;
  for (const SallocRequest& request : requests) asked.push_back(&request);
  auto allocation = Allocation::ask(call, asked, *session);
  if (!allocation) return refuse(allocation.error());
  const std::uint64_t id = allocation->job().value();
  if (!r.quiet)
    fmt::print(stderr, "salloc: Granted job allocation {}\nsalloc: Nodes {} are ready for job\n",
               id, allocation->row().node_list);
  if (r.bell && ::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\a");
  if (r.no_shell) return 0;
  set_environment(call, *allocation, requests, *session);
  const auto done = run_in_allocation(call.program(), Manner::slurm, command,
                                      AtRevocation{&*session, allocation->job(), r.kill_command});
  // The session has been idle as long as the shell ran, so a new one is safer.
  auto again = Session::open(call.program());
  allocation->end(again ? *again : *session, done ? ExitStatus{*done & 0xff, 0} : ExitStatus{1, 0});
  if (!r.quiet) fmt::print(stderr, "salloc: Relinquishing job allocation {}\n", id);
  return done;
}

}  // namespace

extern const Command kSalloc;
const Command kSalloc{
    {"salloc", "Get an allocation and run a command or a shell in it",
     "[: OPTION...]... [COMMAND [ARGUMENT...]]"},
    {.description =
         "Slurm's salloc, over galloc. Waits for nodes, then runs COMMAND, or your shell, here, "
         "with the allocation in its environment: srun in it starts tasks on the allocated nodes. "
         "The nodes are given back when it ends.\n\n"
         "salloc OPTIONS : OPTIONS asks for a heterogeneous job: components with options of their "
         "own, which start together on nodes of their own.",
     .options = kSallocOptions,
     .examples = {{"salloc -N 2 -n 8 -t 1:00:00", "A shell with two nodes for an hour"},
                  {"salloc -n 4 srun -l hostname", "A command instead of a shell"}},
     .exits = {{"N", "the exit code of the command or shell; 128 + the signal that ended it"},
               {"1", "the allocation was refused, or given up while waiting"},
               {"255", "the command line or a variable cannot be parsed"}},
     .run = run_salloc,
     .stop_at_operand = true,
     .env_prefixes = kSallocPrefixes}};

}  // namespace gantry::cli::slurm
