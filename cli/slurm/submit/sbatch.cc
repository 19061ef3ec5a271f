// sbatch: submits a batch script as Slurm's does.
//
// Options come from the script's directives, then from SBATCH_* variables, then from the command
// line. The setters run in that order, so the later one wins.
#include <fmt/core.h>

#include <algorithm>

#include "cli/random_id.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/submit/job_options.h"
#include "cli/slurm/submit/modest_options.h"
#include "cli/submit/batch_option_table.h"
#include "cli/submit/job_request.h"
#include "cli/submit/script.h"
#include "cli/submit/submit.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr Option kOnlySbatchOptions[] = {
    takes("export-file", "FILE|FD",
          "Environment of the job: NAME=VALUE entries, each ended by a zero byte",
          call<set::export_file>),
    may_take("get-user-env", "[SECONDS][L]",
             "Add what a login shell has in its environment; what is set here stays",
             call<set::get_user_env>)
        .from_env("GET_USER_ENV"),
    flag("help", 'h', "Show this help", always).not_in_scripts(),
    flag("ignore-pbs", "Do not read #PBS and #BSUB lines, which is always so", always)
        .from_env("IGNORE_PBS"),
};
constexpr auto kOwnOptions =
    in_order(Family::slurm,
             {"array", "error", "export-file", "get-user-env", "help", "ignore-pbs", "input",
              "no-requeue", "open-mode", "output", "parsable", "quiet", "requeue", "test-only",
              "verbose", "wait", "wait-all-nodes", "wrap"},
             join(kOnlySbatchOptions, kOnlySlurmOptions), kBatchOptionTable, kJobOptionTable);
constexpr auto kSbatchOptions = join(kOwnOptions, kSlurmJobOptions, kSlurmRefused);
constexpr std::string_view kSbatchPrefixes[] = {"SBATCH_"};

struct Script {
  std::string text;
  std::string shown;  // name that places of directives show
  std::string name;   // name of the job, unless the user gives one
  std::string path;   // path, if the script is a file
};

// Checks that a text is a batch script; errors have Slurm's words.
Result<void> check_batch_script(std::string_view text) {
  const auto refuse = [](const char* words) { return fail(ErrorCode::io_error, words); };
  if (text.empty()) return refuse("Batch script is empty!");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return refuse("Batch script contains only whitespace!");
  if (!text.starts_with("#!"))
    return refuse(
        "This does not look like a batch script.  The first\nline must start with #! followed by "
        "the path to an interpreter.\nFor instance: #!/bin/sh");
  if (text.find('\0') != std::string_view::npos)
    return refuse(
        "The SLURM controller does not allow scripts that contain a NULL character '\\0'.");
  if (text.find("\r\n") != std::string_view::npos)
    return refuse(
        "Batch script contains DOS line breaks (\\r\\n)\ninstead of expected UNIX line breaks "
        "(\\n).\nThis changes them: sed -i 's/\\r$//' FILE");
  return {};
}

Result<Script> find_batch_script(const std::string* wrap,
                                 const std::vector<std::string>& operands) {
  if (wrap != nullptr) {
    if (!operands.empty())
      return fail(ErrorCode::io_error, "Script arguments not permitted with --wrap option");
    return Script{
        fmt::format("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n", *wrap),
        "--wrap", "wrap", ""};
  }
  const std::string path = operands.empty() ? "" : operands[0];
  const bool is_stdin = path.empty() || path == "-" || path == "/dev/stdin";
  auto text = read_script(is_stdin ? "" : path);
  if (!text && text.error().code == ErrorCode::not_found)
    return fail(ErrorCode::io_error, fmt::format("Unable to open file {}", path));
  if (!text) return tl::unexpected(text.error());
  TRY(check_batch_script(*text));
  return Script{std::move(*text), is_stdin ? "standard input" : path,
                is_stdin ? "sbatch" : path.substr(path.rfind('/') + 1), is_stdin ? "" : path};
}

const std::string* value_of(const std::vector<Given>& given, std::string_view name) {
  const std::string* value = nullptr;
  for (const Given& g : given)
    if (g.option->name == name) value = &g.value;
  return value;
}

// Options that only the first component may have, because it runs the script.
constexpr std::string_view kOfTheScript[] = {
    "array",        "clusters", "dependency", "error",      "export",    "export-file",
    "get-user-env", "input",    "licenses",   "no-requeue", "open-mode", "output",
    "parsable",     "quiet",    "requeue",    "test-only",  "verbose",   "wait"};

bool is_of_the_script(const Given& given) {
  return std::find(std::begin(kOfTheScript), std::end(kOfTheScript), given.option->name) !=
         std::end(kOfTheScript);
}

// Builds one component, or the whole job, from the directives, the environment and the command
// line.
bool build_part(const Invocation& call, std::vector<Given> given, const Parsed& parsed, bool first,
                SlurmRequest& request, int& status) {
  const auto refuse = [&](const std::string& text) {
    complain(call, text);
    status = 1;
    return false;
  };
  const std::size_t from_script = given.size();
  const auto typed = given.insert(given.end(), parsed.given.begin(), parsed.given.end());
  if (const auto odd = std::find_if(given.begin(), given.end(), is_of_the_script);
      !first && odd != given.end())
    return refuse(fmt::format("{} is for the first component, which runs the script",
                              shown_name(*odd->option)));
  auto variables = options_from_environment(kSbatchOptions, kSbatchPrefixes);
  if (!first) std::erase_if(variables, is_of_the_script);
  given.insert(typed, variables.begin(), variables.end());
  request.now = system_now();
  if (!apply(call, given, static_cast<JobRequest*>(&request), status)) return false;
  // The place tells the source of an option: of --mem and --mem-per-cpu the later source has
  // priority.
  for (std::size_t i = 0; i < from_script; ++i) given[i].place = "the script";
  list_options(call, given);
  auto done = before_finish(call, request, given);
  if (done) done = finish_request(request, given);
  if (done) done = after_finish(request);
  return done ? true : refuse(done.error().message);
}

// The directives of the script, for each component.
std::optional<std::vector<std::vector<Given>>> read_directives(const Invocation& call,
                                                               const Script& script, int& status) {
  auto parts = script_components(script.text, script.shown, kSbatchOptions, Spelling::getopt);
  if (!parts) {
    status = 255;
    if (parts.error().code == ErrorCode::usage)
      fmt::print(stderr, "{}: {}\nTry \"{} --help\" for more information\n", call.program(),
                 parts.error().message, call.program());
    else
      complain(call, parts.error().message);
    return std::nullopt;
  }
  for (auto& part : *parts)
    for (Given& one : part) one.place.clear();  // Slurm's error texts name no place
  return std::move(*parts);
}

// All options of the job, as one request for each component. If it is empty, `status` is the exit
// status of sbatch.
std::vector<SlurmRequest> build_batch_requests(const Invocation& call, std::vector<Parsed> parsed,
                                               Script& script, int& status) {
  // Any component may have the command, which the first one runs.
  const std::string* wrap = nullptr;
  for (const Parsed& part : parsed)
    if (const std::string* own = value_of(part.given, "wrap")) wrap = own;
  const std::vector<std::string> operands = std::move(parsed.back().operands);
  auto found = find_batch_script(wrap, operands);
  if (!found) {
    complain(call, found.error().message);
    status = 1;
    return {};
  }
  script = std::move(*found);
  std::vector<std::vector<Given>> directives(1);
  if (wrap == nullptr) {
    auto read = read_directives(call, script, status);
    if (!read) return {};
    directives = std::move(*read);
  }
  const std::size_t count = std::max(directives.size(), parsed.size());
  directives.resize(count);
  parsed.resize(count);
  for (std::size_t i = 1; i < count; ++i) {
    inherit_options(directives[i - 1], directives[i]);
    inherit_options(parsed[i - 1].given, parsed[i].given);
  }
  std::vector<SlurmRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!build_part(call, std::move(directives[i]), parsed[i], i == 0, requests[i], status)) {
      if (count > 1) complain(call, fmt::format("in component {} of the heterogeneous job", i));
      return {};
    }
    JobSpec& spec = requests[i].spec;
    if (spec.name.empty()) spec.name = i == 0 ? script.name : requests.front().spec.name;
    spec.submit_line = call.line();
    if (i == 0) continue;
    spec.kind = JobKind::allocation;
    spec.std_out.clear();
  }
  JobSpec& spec = requests.front().spec;
  if (!script.path.empty())
    spec.script_path =
        script.path[0] == '/' ? script.path : fmt::format("{}/{}", spec.work_dir, script.path);
  if (operands.size() > 1) spec.script_args.assign(operands.begin() + 1, operands.end());
  return requests;
}

Result<proto::SubmitReply> submit_requests(const Invocation& call,
                                           std::vector<SlurmRequest>& requests, Script&& script,
                                           std::map<std::string, std::string>&& environment,
                                           std::optional<Session>& session) {
  proto::SubmitTogether together;
  for (SlurmRequest& request : requests) {
    proto::SubmitJob& part = together.parts.emplace_back();
    part.request_id = random_id();
    part.spec = std::move(request.spec);
    part.test_only = request.test_only;
  }
  together.parts.front().script = std::move(script.text);
  together.parts.front().environment = std::move(environment);
  if (requests.size() == 1) return submit_job(call.program(), together.parts.front(), session);
  return submit_job(call.program(), together, session);
}

Result<int> run_sbatch(const Invocation& call) {
  int status = 0;
  auto parsed = parse_components(call, status);
  if (!parsed) return status;
  Script script;
  auto requests = build_batch_requests(call, std::move(*parsed), script, status);
  if (requests.empty()) return status;
  const SlurmRequest& request = requests.front();
  std::string named;
  if (!check_clusters(call, request.clusters, named, status)) return status;
  ASSIGN(environment, slurm_environment(request));

  if (!request.quiet) {
    print_warnings(call.program(), script_warnings(script.text, script.shown));
    print_warnings(call.program(), folder_warnings(request.spec));
  }
  std::optional<Session> session;
  const auto reply =
      submit_requests(call, requests, std::move(script), std::move(*environment), session);
  if (!reply) {
    const Words words = words_for(reply.error());
    if (!words.detail.empty() && reply.error().code != ErrorCode::unavailable)
      complain(call, words.detail);
    if (request.test_only)
      fmt::print(stderr, "allocation failure: {}\n", words.text);
    else
      complain(call, "Batch job submission failed: " + words.text);
    return 1;
  }
  for (const std::string& warning : reply->warnings)
    fmt::print(stderr, "{}: warning: {}\n", call.program(), warning);
  if (request.test_only) {
    say_start(call.program(), *reply, request.now);
    return 0;
  }
  const std::uint64_t id = reply->job.value();
  if (request.parsable)
    fmt::print("{}{}{}\n", id, named.empty() ? "" : ";", named);
  else if (!request.quiet)
    fmt::print("Submitted batch job {}{}{}\n", id, named.empty() ? "" : " on cluster ", named);
  std::fflush(stdout);
  if (!request.wait) return 0;
  return wait_for_job(call.program(), std::move(*session), reply->job, true);
}

}  // namespace

extern const Command kSbatch;
const Command kSbatch{
    {"sbatch", "Submit a batch script", "[: OPTION...]... [SCRIPT [ARGUMENT...]]"},
    {.description =
         "Slurm's sbatch, over gbatch: the same options, texts and exit statuses. Options may "
         "stand "
         "in the script, in lines that begin with #SBATCH, before the first command. The command "
         "line wins over SBATCH_* variables, and these over the script. Options that Gantry does "
         "not have are refused by name.\n\n"
         "A heterogeneous job has several components, which start together on nodes of their own: "
         "sbatch OPTIONS : OPTIONS SCRIPT, or a line #SBATCH hetjob between the directives of two. "
         "The first one runs the script. A component has the account, the times, the QOS, --mem "
         "and "
         "the like of the one before it, unless it has its own.",
     .options = kSbatchOptions,
     .examples = {{"sbatch train.sh", "Submit a script; its #SBATCH lines are options"},
                  {"sbatch --parsable -a 0-99%8 sweep.sh",
                   "A hundred tasks, eight at a time; prints the id"},
                  {"sbatch -d afterok:120 --wrap='python3 best.py'",
                   "A command that runs when job 120 has ended well"}},
     .exits = {{"0", "the job is submitted (with --wait: it ended with 0)"},
               {"1", "it was refused, or the controller cannot be reached"},
               {"255", "the command line, a directive or a variable cannot be parsed"},
               {"N", "with --wait: the job's exit code"}},
     .run = run_sbatch,
     .stop_at_operand = true,
     .env_prefixes = kSbatchPrefixes}};

}  // namespace gantry::cli::slurm
