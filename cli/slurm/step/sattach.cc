// sattach: shows the output of a running step a second time. The step's srun, if any, is not
// affected: output that sattach does not read in time is lost only for sattach
// (noded/shim/io/step_io.h).
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "cli/session.h"
#include "cli/slurm/frame.h"
#include "cli/step/step_launch.h"
#include "cli/step/step_streams.h"
#include "common/codec/codec.h"
#include "common/net/job_socket_client.h"
#include "common/net/secure_stream.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct SattachRequest : StepOptions {
  std::optional<std::uint32_t> only_input;
  bool filtered = false, error_filtered = false;
  bool layout = false;
  unsigned level = 0;  // how often -v was given
};

// The task's number; "-" means all tasks.
Result<std::optional<std::uint32_t>> task_of(std::string_view text, std::string_view option) {
  if (text == "-") return std::optional<std::uint32_t>();
  const auto task = parse_integer("a task", text, 0, INT32_MAX);
  if (!task)
    return fail(ErrorCode::invalid_argument,
                fmt::format("Invalid numeric value \"{}\" for {}.", text, option));
  return std::optional(static_cast<std::uint32_t>(*task));
}
Result<void> set_input_filter(SattachRequest& r, std::string_view text) {
  ASSIGN(task, task_of(text, "input-filter"));
  r.only_input = *task;
  r.filtered = true;
  return {};
}
Result<void> set_output_filter(SattachRequest& r, std::string_view text) {
  ASSIGN(task, task_of(text, "output-filter"));
  r.only_output = *task;
  if (!r.error_filtered) r.only_error = *task;
  r.filtered = true;
  return {};
}
Result<void> set_error_filter(SattachRequest& r, std::string_view text) {
  ASSIGN(task, task_of(text, "error-filter"));
  r.only_error = *task;
  r.filtered = r.error_filtered = true;
  return {};
}

constexpr Option kSattachOptions[] = {
    takes("error-filter", "TASK",
          "Standard error of this task only (default: as --output-filter); - is all",
          call<set_error_filter>),
    flag("help", 'h', "Show this help", always),
    takes("input-filter", "TASK",
          "Our input goes to this task: 0, the only one that has any; - is the same",
          call<set_input_filter>),
    flag("label", 'l', "The task's number in front of each line", put<&SattachRequest::label>),
    flag("layout", "Show which tasks are on which node, and end", put<&SattachRequest::layout>),
    takes("output-filter", "TASK", "Standard output of this task only; - is all",
          call<set_output_filter>),
    flag("pty", "Keys go to the terminal of task 0 as they are; for a step begun with srun --pty",
         put<&SattachRequest::terminal>),
    flag("quiet", 'Q', "Do not say that a node has no tasks left", put<&SattachRequest::quiet>),
    flag("verbose", 'v', "Say from where output comes", does<[](SattachRequest& r) {
           r.verbose = true;
           ++r.level;
         }>),
    refuses("debugger-test", "no table of processes is kept for debuggers"),
};

struct SattachStep {
  proto::JobRef job;
  StepId step{};
};

// The step that the user names; nullopt if the word is wrong, which is already reported.
std::optional<SattachStep> step_named(const Invocation& call, const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    complain(call, why);
    return std::nullopt;
  };
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return refuse("Did not find a period in the step ID string");
  const auto job = parse_job_ref(text.substr(0, dot));
  if (!job) return refuse(fmt::format("\"{}\" does not look like a jobid", text.substr(0, dot)));
  const std::string step = text.substr(dot + 1);
  if (step == "batch")
    return refuse(
        fmt::format("a batch script writes to a file, not to an srun: gctl logs -f {} follows it",
                    text.substr(0, dot)));
  const auto number = parse_integer("step", step, 0, UINT32_MAX);
  if (!number) return refuse(fmt::format("\"{}\" does not look like a stepid", step));
  return SattachStep{*job, StepId(static_cast<std::uint32_t>(*number))};
}

void print_layout(const proto::StepPermission& permission) {
  std::vector<std::string> names;
  for (const proto::StepNode& node : permission.nodes) names.push_back(node.node);
  fmt::print("Job step layout:\n\t{} tasks, {} nodes ({})\n\n", permission.tasks, names.size(),
             compress_hostlist(names));
  for (std::size_t i = 0; i < permission.nodes.size(); ++i) {
    const proto::StepNode& node = permission.nodes[i];
    fmt::print("\tNode {} ({}), {} task(s): ", i, node.node, node.tasks);
    for (std::uint32_t task = 0; task < node.tasks; ++task) fmt::print("{} ", node.rank(task));
    fmt::print("\n");
  }
}

const char* disagreement(const SattachRequest& r) {
  if (r.quiet && r.verbose) return "don't specify both --verbose (-v) and --quiet (-Q)";
  if (r.terminal && r.filtered) return "don't specify both --pty and I/O filtering";
  if (r.terminal && r.label) return "--pty: what a terminal shows has no lines to label";
  if (r.only_input && *r.only_input != 0)
    return "--input-filter: only task 0 of a step has an input";
  return nullptr;
}

// Shows the streams of all nodes until the tasks have ended or a signal ends this process.
Result<int> watch_step(const Invocation& call, const SattachRequest& r,
                       const proto::StepGranted& granted, const proto::StepPermission& permission) {
  ASSIGN(door, StepDoor::open(permission));
  proto::AttachStep attach;
  attach.permission = granted.permission;
  attach.signature = granted.signature;
  door->tell(attach);
  StepStreams streams(call.program(), permission, door->key(), r);
  ASSIGN(none, door->attach(permission, std::move(attach)));
  for (const std::size_t node : *none) {
    streams.leave_out(node);
    if (!r.quiet)
      fmt::print(stderr, "sattach: Node {}: no tasks running\n", permission.nodes[node].node);
  }
  if (r.verbose) {
    if (r.level > 1) fmt::print(stderr, "sattach: verbose           : {}\n", r.level);
    for (std::size_t i = 0; i < permission.nodes.size(); ++i)
      if (std::find(none->begin(), none->end(), i) == none->end())
        fmt::print(stderr, "sattach: Node {}, {} tasks\n", permission.nodes[i].node,
                   permission.nodes[i].tasks);
  }
  ASSIGN(result, streams.run(door->source()));
  return result->exit_status;
}

Result<int> run_sattach(const Invocation& call) {
  SattachRequest r;
  r.role = StepRole::attached;
  r.manner = Manner::slurm;
  int status = 0;
  const auto operands = parse_into(call, &r, status);
  if (!operands) return status;
  const auto refuse = [&](const std::string& why) { return complain(call, why); };
  if (operands->empty()) return refuse("no job step ID given");
  if (operands->size() > 1) return refuse("too many parameters");
  const auto named = step_named(call, operands->front());
  if (!named) return 1;
  if (const char* wrong = disagreement(r)) return refuse(wrong);
  auto session = Session::open(call.program());
  if (!session) return refuse("Could not get job step info: " + words_for(session.error()).text);
  const auto granted =
      session->call<proto::StepGranted>(proto::StepAttach{named->job, named->step});
  if (!granted)
    return refuse(granted.error().code == ErrorCode::not_found
                      ? "Could not get job step info: Invalid job id specified"
                      : "Could not get job step info: " + words_for(granted.error()).text);
  ASSIGN(permission, codec::decode<proto::StepPermission>(granted->permission));
  if (r.layout) {
    print_layout(*permission);
    return 0;
  }
  const auto exists = [&](const std::optional<std::uint32_t>& task) {
    return !task || *task < permission->tasks;
  };
  if (!exists(r.only_output) || !exists(r.only_error))
    return refuse(fmt::format("the step has tasks 0 to {}", permission->tasks - 1));
  if (!permission->may_type) {
    if (r.terminal || r.only_input)
      return refuse("only the owner of a job may type into its steps");
    r.input = StepInput::none;
  }
  const auto done = watch_step(call, r, *granted, *permission);
  return done ? *done : refuse(words_for(done.error()).text);
}

}  // namespace

extern const Command kSattach;
const Command kSattach{
    {"sattach", "Attach to a running step", "JOB.STEP"},
    {.description =
         "Slurm's sattach. What the tasks of a step that runs write appears here as well, from now "
         "on, until they end; its srun is neither slowed nor does it lose anything. Up to 16 may "
         "be "
         "attached at a time. One that reads too slowly is told how many bytes it has missed. What "
         "is typed here goes to task 0, beside what srun sends; the end of it does not. Ctrl-C "
         "detaches and sends nothing to the step.\n\n"
         "Who may read a job's output may attach to its steps: its owner, administrators of its "
         "tenant, operators. Only the owner may type. Output that srun -o sends to files is not "
         "seen here, nor is that of a batch script.",
     .options = kSattachOptions,
     .examples = {{"sattach 12.0", "See what step 0 of job 12 writes from now on"},
                  {"sattach -l --output-filter=3 12.0", "Of task 3 only, with its number"},
                  {"sattach --layout 12.0", "Which tasks are on which node"}},
     .exits = {{"0", "the tasks have ended, each with 0, or by a signal"},
               {"N",
                "the largest exit code of the tasks; 128 + the signal that ended sattach itself"},
               {"1",
                "there is no such step, it is not yours to see, or the command line is wrong"}},
     .run = run_sattach,
     .stop_at_operand = true}};

}  // namespace gantry::cli::slurm
