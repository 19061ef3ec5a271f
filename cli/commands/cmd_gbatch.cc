// gbatch: submits a batch script.
//
// Options come from the script's directives, then from SBATCH_* and GBATCH_* variables, then from
// the command line. The setters run in that order, so the later one wins. If it is not known
// whether a submit has arrived, it is repeated with the same request id: if the first one did
// arrive, the controller answers with its job.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/random_id.h"
#include "cli/session.h"
#include "cli/step/step_run.h"
#include "cli/submit/batch_option_table.h"
#include "cli/submit/job_options.h"
#include "cli/submit/script.h"
#include "cli/submit/submit.h"
#include "common/text/text.h"

namespace gantry::cli::gbatch {
namespace {

constexpr auto kOwnOptions = in_order(Family::gantry,
                                      {"array", "input", "output", "error", "open-mode", "parsable",
                                       "quiet", "test-only", "verbose", "wait", "wrap"},
                                      {}, kBatchOptionTable, kJobOptionTable);
constexpr auto kOptions = join(kOwnOptions, kJobOptions, kRefusedJobOptions, kRefusedStepOptions);

constexpr std::string_view kPrefixes[] = {"SBATCH_", "GBATCH_"};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// The script and its name. The operands of the command are the script's path and arguments.
struct Source {
  std::string script;
  std::string shown;  // name that places of directives show
  std::string name;   // name of the job, unless the user gives one
};
Result<Source> find_script(const std::optional<std::string>& wrap,
                           const std::vector<std::string>& operands) {
  Source source;
  if (wrap) {
    if (!operands.empty())
      return fail(ErrorCode::usage, "Script arguments not permitted with --wrap option");
    if (wrap->find('\0') != std::string::npos || wrap->empty())
      return fail(ErrorCode::usage, "--wrap needs a command");
    return Source{script_of_wrap(*wrap), "--wrap", "wrap"};
  }
  const std::string path = operands.empty() ? "" : operands[0];
  ASSIGN(text, read_script(path));
  TRY(check_script(*text));
  source.script = std::move(*text);
  const bool is_stdin = path.empty() || path == "-" || path == "/dev/stdin";
  source.shown = is_stdin ? "standard input" : path;
  source.name = is_stdin ? "gbatch" : base_name(path);
  return source;
}

const Given* find_given(const std::vector<Given>& given, std::string_view name) {
  for (const Given& g : given)
    if (g.option->name == name) return &g;
  return nullptr;
}

Result<JobRequest> build_request(const Invocation& invocation, const Parsed& parsed,
                                 Source& source) {
  const Given* wrap = find_given(parsed.given, "wrap");
  ASSIGN(found,
         find_script(wrap == nullptr ? std::nullopt : std::optional(wrap->value), parsed.operands));
  source = std::move(*found);

  std::vector<Given> given;
  if (wrap == nullptr) {
    ASSIGN(directives, script_options(source.script, source.shown, kOptions));
    given = std::move(*directives);
  }
  const auto variables = options_from_environment(kOptions, kPrefixes);
  given.insert(given.end(), variables.begin(), variables.end());
  given.insert(given.end(), parsed.given.begin(), parsed.given.end());

  JobRequest request;
  request.now = system_now();
  TRY(apply_options(given, &request));
  TRY(finish_request(request, given));
  if (request.spec.name.empty()) request.spec.name = source.name;
  request.spec.submit_line = invocation.line();
  if (parsed.operands.size() > 1)
    request.spec.script_args.assign(parsed.operands.begin() + 1, parsed.operands.end());
  return request;
}

// Prints Slurm's line if the controller can tell when and where the job starts; otherwise what the
// controller does know.
void print_estimate(const std::string& program, const proto::SubmitReply& reply) {
  if (reply.expected_start)
    fmt::print(stderr, "{}: Job to start at {} using {} processors on nodes {} in partition {}\n",
               program, format_time(*reply.expected_start), reply.cpus, reply.expected_nodes,
               reply.partition);
  else
    fmt::print(
        stderr,
        "{}: the job is acceptable: {} processors in partition {}; when it would start is not "
        "known now\n",
        program, reply.cpus, reply.partition);
}

// Prints "cost: 5.0000 EUR an hour, about 9.5000 as planned, at most 20.0000"; nothing if there are
// no prices.
void print_cost(const std::string& program, const proto::SubmitReply& reply) {
  if (!reply.cost_per_hour) return;
  std::string text =
      fmt::format("cost: {} {} an hour", format_money(*reply.cost_per_hour, 4), reply.currency);
  if (reply.cost_expected)
    text += fmt::format(", {} if it starts then and runs to its limit",
                        format_money(*reply.cost_expected, 4));
  if (reply.cost_most)
    text += fmt::format(", at most {} in all", format_money(*reply.cost_most, 4));
  fmt::print(stderr, "{}: {}\n", program, text);
}

// Tells whether the planner expects the job to end before its deadline, as things are now.
void tell_deadline(const std::string& program, Session& session, JobId job, Instant deadline,
                   bool quiet) {
  const auto shown = session.call<proto::ShowJobReply>(proto::ShowJob{{job, {}}, false});
  const auto plan = session.call<proto::WhatIfReply>(proto::WhatIf{{job, {}}});
  // The job stays queued even if this request fails.
  if (!shown || shown->jobs.empty() || !plan) return;
  const proto::JobRow& row = shown->jobs.front().row;
  const auto start = row.started ? row.started : plan->start;
  const Duration limit = row.time_limit.value_or(Duration{});
  if (!start) {
    fmt::print(stderr,
               "{}: when job {} starts is not known yet; it ends unless it can be done by {}\n",
               program, job.value(), format_time(deadline));
  } else if (*start + limit > deadline) {
    fmt::print(stderr,
               "{}: warning: as things are, job {} would start at {} and end at {}, after its "
               "deadline {}: it ends unless others end early\n",
               program, job.value(), format_time(*start), format_time(*start + limit),
               format_time(deadline));
    if (!plan->rows.empty())
      fmt::print(stderr, "{}: it would start sooner with {}\n", program,
                 plan->rows.front().options);
  } else if (!quiet) {
    fmt::print(stderr, "{}: job {} is expected to end by {}, {} before its deadline\n", program,
               job.value(), format_time(*start + limit),
               format_duration(deadline - (*start + limit)));
  }
}

Result<int> run(const Invocation& invocation) {
  ASSIGN(parsed, invocation.parse_only());
  if (!*parsed) return 0;
  Source source;
  ASSIGN(request, build_request(invocation, **parsed, source));

  proto::SubmitJob message;
  message.request_id = random_id();
  message.spec = std::move(request->spec);
  message.script = std::move(source.script);
  message.environment = job_environment(request->exported);
  for (auto& [name, value] : task_gpu_variables(request->gpus, ""))
    message.environment[name] = value;
  message.test_only = request->test_only;
  if (request->verbose)
    fmt::print(stderr, "{}\n", codec::to_json(message.spec, codec::JsonStyle::pretty));

  if (!request->quiet) {
    print_warnings(invocation.program(), script_warnings(message.script, source.shown));
    print_warnings(invocation.program(), folder_warnings(message.spec));
  }
  std::optional<Session> session;
  const auto reply = submit_job(invocation.program(), message, session);
  if (!reply)
    return fail(reply.error().code, fmt::format("{}: {}",
                                                request->test_only ? "allocation failure"
                                                                   : "Batch job submission failed",
                                                reply.error().message));
  for (const std::string& warning : reply->warnings)
    fmt::print(stderr, "{}: {}\n", invocation.program(), warning);
  if (request->test_only) {
    print_estimate(invocation.program(), *reply);
    print_cost(invocation.program(), *reply);
    return 0;
  }
  if (!request->quiet)
    fmt::print("{}{}\n", request->parsable ? "" : "Submitted batch job ", reply->job.value());
  if (!request->quiet) std::fflush(stdout);
  if (!request->quiet && !request->parsable) print_cost(invocation.program(), *reply);
  if (message.spec.deadline)
    tell_deadline(invocation.program(), *session, reply->job, *message.spec.deadline,
                  request->quiet);
  if (!request->wait) return 0;
  std::fflush(stdout);
  return wait_for_job(invocation.program(), std::move(*session), reply->job, request->quiet);
}

}  // namespace

extern const Command kGbatch;
const Command kGbatch{
    {"gbatch", "Submit a batch script", "[SCRIPT [ARGUMENT...]]"},
    {.description =
         "Submits SCRIPT, or what comes from standard input, to be run in a container on the nodes "
         "that it asks for, and prints the id of the job. The script begins with #! and is kept by "
         "the controller: it may be changed or removed afterwards.\n\n"
         "Options may stand in the script, in lines that begin with #SBATCH or #GANTRY, before the "
         "first command. The command line wins over SBATCH_* and GBATCH_* variables, and these "
         "over "
         "the script. Options of Slurm that Gantry does not have are refused by name.",
     .options = kOptions,
     .examples = {{"gbatch train.sh", "Submit a script; its #SBATCH lines are options"},
                  {"gbatch -n 4 --mem=8G -t 2:00:00 -o logs/%j.out train.sh --epochs 10",
                   "Four tasks, 8 GB on each node, two hours; what follows the script is for the "
                   "script"},
                  {"gbatch -a 0-99%8 sweep.sh",
                   "A hundred tasks, eight at a time; SLURM_ARRAY_TASK_ID tells which"},
                  {"gbatch -d afterok:120 --wrap='python3 best.py'",
                   "A command that runs when job 120 has ended well"},
                  {"gbatch --wait --parsable job.sh",
                   "Wait for the end; the exit status is the job's"}},
     .exits =
         {{"0", "the job is submitted (with --wait: it ended with 0)"},
          {"1", "it was refused, or the controller cannot be reached"},
          {"2", "the command line, a directive or a variable is wrong"},
          {"N",
           "with --wait: the job's exit code, 128 + the signal that ended it, or 1 if it never "
           "ran"}},
     .run = run,
     .stop_at_operand = true,
     .env_prefixes = kPrefixes}};

}  // namespace gantry::cli::gbatch
