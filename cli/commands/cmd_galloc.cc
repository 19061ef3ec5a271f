// galloc: asks for an allocation and runs a command (or a shell) on this host while it lasts. grun,
// called by that command, starts steps on the allocated nodes.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/step/allocation.h"
#include "cli/step/allocation_shell.h"
#include "cli/submit/job_options.h"

namespace gantry::cli::galloc {
namespace {

struct GallocRequest : JobRequest {
  bool no_shell = false;
};

constexpr Option kOnlyGallocOptions[] = {
    flag("no-shell", "Run nothing: the job lives on without us, until its time limit or gcancel",
         put<&GallocRequest::no_shell>),
    refuses("x11", "X11 is not forwarded"),
};
constexpr auto kOwnOptions =
    in_order(Family::gantry, {"no-shell", "quiet", "x11"}, kOnlyGallocOptions, kJobOptionTable);
constexpr auto kOptions = join(kOwnOptions, kJobOptions, kRefusedJobOptions, kRefusedStepOptions);

constexpr std::string_view kPrefixes[] = {"SALLOC_", "GALLOC_"};

Result<int> run(const Invocation& invocation) {
  ASSIGN(parsed, invocation.parse_only());
  if (!*parsed) return 0;
  GallocRequest request;
  request.now = system_now();
  auto given = options_from_environment(kOptions, kPrefixes);
  given.insert(given.end(), (*parsed)->given.begin(), (*parsed)->given.end());
  TRY(apply_options(given, static_cast<JobRequest*>(&request)));
  TRY(finish_request(request, given));

  if (request.no_shell && !(*parsed)->operands.empty())
    return fail(ErrorCode::usage, "--no-shell runs no command; leave it, or the command");
  ASSIGN(session, Session::open(invocation.program()));
  ASSIGN(allocation, Allocation::ask(invocation, request, *session));
  if (!request.quiet)
    fmt::print(stderr, "{}: Granted job allocation {} on {}\n", invocation.program(),
               allocation->job().value(), allocation->row().node_list);
  if (request.no_shell) return 0;
  set_allocation_environment(allocation->row(), request);
  if (const auto known = set_allocation_geometry(*session, allocation->job()); !known)
    fmt::print(stderr, "galloc: {}\n", known.error().message);
  auto status = run_in_allocation(invocation.program(), Manner::gantry, (*parsed)->operands,
                                  AtRevocation{&*session, allocation->job(), {}});
  // The session has been idle as long as the shell ran, so a new one is safer.
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
    {"galloc", "Get an allocation and run a command or a shell in it", "[COMMAND [ARGUMENT...]]"},
    {.description =
         "Waits for nodes, then runs COMMAND (or your shell) here, with the allocation in its "
         "environment: grun in it starts tasks on the allocated nodes. The nodes are given back "
         "when the command ends. With --no-shell nothing runs here; grun --jobid uses the nodes "
         "until "
         "gcancel, or the time limit, ends the job.",
     .options = kOptions,
     .examples = {{"galloc -N 2 -n 8 -t 1:00:00",
                   "A shell with eight tasks' worth of two nodes for an hour"},
                  {"galloc -n 4 grun -l hostname", "A command instead of a shell"}},
     .exits = {{"N", "the exit code of the command or shell; 128 + the signal that ended it"},
               {"1", "the allocation was refused, or given up while waiting"},
               {"2", "the command line is wrong"}},
     .run = run,
     .stop_at_operand = true,
     .env_prefixes = kPrefixes}};

}  // namespace gantry::cli::galloc
