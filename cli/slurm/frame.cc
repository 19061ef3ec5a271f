// Finds a command, parses its options, and reports errors as Slurm does.
#include "cli/slurm/frame.h"

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <map>

#include "cli/slurm/help.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {

#define GANTRY_SLURM_COMMANDS(X) \
  X(kSbatch)                     \
  X(kSqueue)                     \
  X(kScancel)                    \
  X(kSacct)                      \
  X(kSinfo)                      \
  X(kScontrol)                   \
  X(kSrun)                       \
  X(kSalloc)                     \
  X(kSacctmgr)                   \
  X(kSshare)                     \
  X(kSprio)                      \
  X(kSdiag)                      \
  X(kSstat)                      \
  X(kSreport)                    \
  X(kSattach)                    \
  X(kSbcast)                     \
  X(kStrigger)

#define X(name) extern const Command name;
GANTRY_SLURM_COMMANDS(X)
#undef X

namespace {

#define X(name) &name,
constexpr const Command* kAllOfSlurm[] = {GANTRY_SLURM_COMMANDS(X)};
#undef X

constexpr Option kSlurmCommon[] = {
    flag("help", "Show this help", always).not_in_scripts(),
    flag("usage", "Show the first lines of this help", always).not_in_scripts(),
    may_take("version", 'V', "gantry",
             "Show the version of Slurm whose commands these are, or with =gantry our own", always)
        .not_in_scripts(),
};

void write_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool has_name(const Command& command, std::string_view name) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [&](const Option& option) { return option.name == name; });
}

// Slurm's message for a value that it cannot use, and the exit status that goes with it.
struct BadValue {
  std::string_view option;
  std::string_view text;  // {} = the message is the value itself
  int status;
};
constexpr BadValue kBadValues[] = {
    {"ntasks", "Invalid numeric value \"{}\" for --ntasks.", 1},
    {"cpus-per-task", "Invalid numeric value \"{}\" for --cpus-per-task.", 1},
    {"cpus-per-gpu", "Invalid numeric value \"{}\" for --cpus-per-gpu.", 1},
    {"ntasks-per-node", "Invalid numeric value \"{}\" for --ntasks-per-node.", 1},
    {"threads-per-core", "Invalid numeric value \"{}\" for --threads-per-core.", 1},
    {"nodes", "\"{}\" is not a valid node count", 255},
    {"gres", "Invalid generic resource (gres) specification", 1},
    {"gpus", "Invalid generic resource (gres) specification", 1},
    {"gpus-per-node", "Invalid generic resource (gres) specification", 1},
    {"gpus-per-task", "Invalid generic resource (gres) specification", 1},
    {"gpu-bind", "Invalid --gpu-bind argument: gpu:{}", 255},
    {"gpu-freq", "Invalid --gpu-freq argument: gpu:{}", 255},
    {"array", "Batch job submission failed: Invalid job array specification", 1},
    {"dependency", "Batch job submission failed: Job dependency problem", 1},
    {"nodelist", "Batch job submission failed: Invalid node name specified", 1},
    {"exclude", "Batch job submission failed: Invalid node name specified", 1},
    {"constraint", "Batch job submission failed: Invalid feature specification", 1},
    {"states", "{}", 1},
    {"state", "{}", 1},
};

int report_value(const Invocation& call, const Given& given, const Error& error) {
  const auto known =
      std::find_if(std::begin(kBadValues), std::end(kBadValues),
                   [&](const BadValue& bad) { return bad.option == given.option->name; });
  const bool starts_jobs = usage_status(call.command()) == 255;
  if (known == std::end(kBadValues) || !starts_jobs) {
    if (!starts_jobs) return complain(call, error.message);
    complain(call, fmt::format("Invalid --{} specification", given.option->name));
    complain(call, error.message);
    return 255;
  }
  complain(call, fmt::format(fmt::runtime(known->text), given.value));
  if (known->text != "{}") complain(call, error.message);
  return known->status;
}

}  // namespace

std::string help_of(const Command& command) {
  return slurm_help(command, kSlurmCommon);
}

std::string usage_of(const Command& command) {
  return slurm_usage(command, kSlurmCommon);
}

Result<void> always(void*, std::string_view) {
  return {};
}

std::span<const Command* const> slurm_commands() {
  return kAllOfSlurm;
}

int usage_status(const Command& command) {
  return command.name == "sbatch" || command.name == "srun" || command.name == "salloc" ? 255 : 1;
}

void print_date() {
  const std::time_t now = static_cast<std::time_t>(system_now().us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a %b %d %H:%M:%S %Y", &parts);
  fmt::print("{}\n", text.data());
}

int complain(const Invocation& call, std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    // Slurm writes "fatal: " instead of "error: " when the command ends
    const bool fatal = line.starts_with("fatal: ");
    lines += fmt::format("{}: {}{}\n", call.program(), fatal ? "" : "error: ", line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  write_error(lines);
  return 1;
}

int run(const Command& command, std::vector<std::string> args) {
  const Invocation call(std::string(command.name), command, std::move(args));
  const auto status = command.run(call);
  if (status) return *status;
  const Words words = words_for(status.error());
  if (!words.detail.empty()) complain(call, words.detail);
  return complain(call, words.text);
}

std::optional<Parsed> parse(const Invocation& call, int& status) {
  const Command& command = call.command();
  std::vector<Option> options(command.options.begin(), command.options.end());
  for (const Option& option : kSlurmCommon)
    if (!has_name(command, option.name)) options.push_back(option);
  auto parsed = parse_options(options, call.args(), command.stop_at_operand, Spelling::getopt);
  if (!parsed) {
    std::string text = fmt::format("{}: {}\n", call.program(), parsed.error().message);
    // Slurm's sacct and sstat do not print this line
    if (command.name != "sacct" && command.name != "sstat")
      text += fmt::format("Try \"{} --help\" for more information\n", call.program());
    write_error(text);
    status = usage_status(command);
    return std::nullopt;
  }
  std::vector<Given> own;
  for (Given& given : parsed->given) {
    const std::string_view name = given.option->name;
    if (name == "version") {
      if (given.value == "gantry")
        fmt::print("gantry {}\n", kVersion);
      else
        fmt::print("{}\n", kSlurmVersion);
    } else if (name == "help" || name == "usage") {
      const std::string text = name == "help" ? help_of(command) : usage_of(command);
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      // The command's table outlives this call; `options` does not.
      given.option = &command.options[static_cast<std::size_t>(given.option - options.data())];
      own.push_back(std::move(given));
      continue;
    }
    status = 0;
    return std::nullopt;
  }
  parsed->given = std::move(own);
  return std::move(*parsed);
}

std::optional<std::vector<Parsed>> parse_components(const Invocation& call, int& status) {
  std::vector<Parsed> parts;
  std::vector<std::string> args = call.args();
  while (true) {
    auto parsed = parse(Invocation(call.program(), call.command(), args), status);
    if (!parsed) return std::nullopt;
    std::vector<std::string>& operands = parsed->operands;
    const bool more = !operands.empty() && operands[0] == ":";
    if (more) args.assign(operands.begin() + 1, operands.end());
    if (more) operands.clear();
    parts.push_back(std::move(*parsed));
    if (!more) return parts;
  }
}

bool apply(const Invocation& call, std::span<const Given> given, void* target, int& status) {
  for (const Given& one : given) {
    const std::string place = one.place.empty() ? "" : one.place + ": ";
    if (!one.option->refused.empty()) {
      complain(call, fmt::format("{}{} is not supported: {}", place, shown_name(*one.option),
                                 one.option->refused));
      status = 1;
      return false;
    }
    if (const auto done = one.option->set(target, one.value); !done) {
      status = report_value(call, one, done.error());
      return false;
    }
  }
  return true;
}

bool was_typed(std::span<const Given> typed, std::initializer_list<std::string_view> names) {
  return std::any_of(typed.begin(), typed.end(), [&](const Given& given) {
    return std::find(names.begin(), names.end(), given.option->name) != names.end();
  });
}

std::optional<std::vector<std::string>> parse_into(const Invocation& call, void* target,
                                                   int& status, Outdone outdone) {
  auto parsed = parse(call, status);
  if (!parsed) return std::nullopt;
  auto given = options_from_environment(call.command().options, call.command().env_prefixes);
  if (outdone != nullptr)
    std::erase_if(given, [&](const Given& one) { return outdone(parsed->given, one); });
  given.insert(given.end(), parsed->given.begin(), parsed->given.end());
  if (!apply(call, given, target, status)) return std::nullopt;
  // With -v a command without other reports prints its options.
  if (std::any_of(given.begin(), given.end(), [](const Given& one) {
        return one.option->name == "verbose" && one.option->set == always;
      }))
    list_values(call, given);
  return std::move(parsed->operands);
}

std::string cluster_name() {
  const auto config = find_client_config();
  if (config && !config->cluster.empty()) return config->cluster;
  const char* name = std::getenv("SLURM_CLUSTER_NAME");
  return name != nullptr && *name != 0 ? name : "gantry";
}

bool check_clusters(const Invocation& call, const std::optional<std::string>& asked,
                    std::string& named, int& status) {
  const char* variable = std::getenv("SLURM_CLUSTERS");
  const std::string text = asked ? *asked : variable != nullptr ? variable : "";
  if (text.empty()) return true;
  named = cluster_name();
  for (const std::string& name : split_list(text)) {
    if (name == named || name == "all") continue;
    complain(call, fmt::format("'{}' can't be reached now, or it is an invalid entry for "
                               "--cluster.  Use 'sacctmgr list clusters' to see available "
                               "clusters.",
                               name));
    status = 1;
    return false;
  }
  return true;
}

// With -v, commands print their options on standard error by the functions below.
namespace {

// Slurm prints times in its own format, and other values as they were given.
std::string shown_value(const Given& given) {
  const Option& option = *given.option;
  if (option.arg == Arg::none || (option.arg == Arg::optional && given.value.empty())) return "set";
  if (option.name != "time" && option.name != "time-min") return given.value;
  const auto time = parse_duration(given.value);
  return time && *time ? format_duration_long(**time) : given.value;
}

}  // namespace

std::size_t verbosity_of(std::span<const Given> given) {
  std::size_t level = 0;
  for (const Given& one : given) {
    if (one.option->name != "verbose") continue;
    // A variable sets a level; each -v raises it by one.
    const int named = std::atoi(one.value.c_str());
    level = named > 0 ? static_cast<std::size_t>(named) : level + 1;
  }
  return level;
}

void list_options(const Invocation& call, std::span<const Given> given) {
  const std::size_t level = verbosity_of(given);
  if (level == 0) return;
  std::map<std::string_view, std::string> values;
  for (const Given& one : given) values[one.option->name] = shown_value(one);
  values["verbose"] = std::to_string(level);
  const auto say = [&](const std::string& text) {
    fmt::print(stderr, "{}: {}\n", call.program(), text);
  };
  const std::string rule = fmt::format("{0} {0}", std::string(20, '-'));
  say("defined options");
  say(rule);
  for (const auto& [name, value] : values) say(fmt::format("{:<20}: {}", name, value));
  say(rule);
  say("end of defined options");
  if (level < 2) return;
  for (const Given& one : given)
    say(fmt::format("debug:  {} comes from {}", shown_name(*one.option),
                    one.place.empty() ? "the command line" : one.place));
}

void list_values(const Invocation& call, std::span<const Given> given) {
  const std::size_t level = verbosity_of(given);
  if (level == 0) return;
  const std::string rule(29, '-');
  fmt::print(stderr, "{}\n", rule);
  for (const Option& option : call.command().options) {
    if (!option.refused.empty() || option.help.starts_with("The same")) continue;
    const Given* last = nullptr;
    for (const Given& one : given)
      if (one.option->name == option.name) last = &one;
    std::string value = option.arg != Arg::none ? "n/a" : "false";
    if (option.name == "iterate") value = "0";
    if (last != nullptr) value = option.arg == Arg::none ? "true" : last->value;
    if (option.name == "verbose") value = std::to_string(level);
    fmt::print(stderr, "{:<11} = {}\n", option.name, value);
  }
  fmt::print(stderr, "{}\n\n", rule);
}

// Translates errors to Slurm's words. The controller's error is a sentence, but clients of Slurm
// search for its fixed texts. The table finds them by the error's code and a part of its sentence.
namespace {

struct Row {
  ErrorCode code;
  std::string_view part;  // a part of Gantry's sentence; "" = any
  std::string_view text;  // Slurm's text
};

constexpr std::string_view kNoPartition = "there is no partition \"";
constexpr std::string_view kConfiguration = "Requested node configuration is not available";
constexpr std::string_view kLimits =
    "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)";
constexpr std::string_view kTime =
    "Requested time limit is invalid (missing or exceeds some limit)";
constexpr std::string_view kAccount = "Invalid account or account/partition combination specified";

constexpr std::string_view kNobody = "Unable to contact slurm controller (connect failure)";

constexpr Row kRows[] = {
    {ErrorCode::not_found, "client.conf", kNobody},
    {ErrorCode::not_found, kNoPartition, "Invalid partition name specified"},
    {ErrorCode::not_found, "no default partition",
     "No partition specified or system default partition"},
    {ErrorCode::invalid_argument, "belongs to several tenants",
     "No partition specified or system default partition"},
    {ErrorCode::not_found, "has no project", kAccount},
    {ErrorCode::not_found, "there is no tenant or project", kAccount},
    {ErrorCode::permission_denied, "may not submit to tenant", kAccount},
    {ErrorCode::permission_denied, "does not belong to", kAccount},
    {ErrorCode::permission_denied, "is in no group that may use",
     "User's group not permitted to use this partition"},
    {ErrorCode::permission_denied, "belongs to no tenant", kAccount},
    {ErrorCode::invalid_argument, "name one of the tenants", kAccount},
    {ErrorCode::permission_denied, "account", kAccount},
    {ErrorCode::not_found, "is not in this cluster", "Invalid node name specified"},
    {ErrorCode::invalid_argument, "nodes: there is no node", "Invalid node name specified"},
    {ErrorCode::already_exists, " exists already", "Invalid partition name specified"},
    {ErrorCode::already_exists, "is the same one", "Duplicate event trigger"},
    {ErrorCode::wrong_state, "is in use", "Partition is in use"},
    {ErrorCode::wrong_state, "has ended: ", "Job/step already completing or completed"},
    {ErrorCode::wrong_state, "accepts no jobs",
     "Required partition not available (inactive or drain)"},
    {ErrorCode::invalid_argument, "is not in partition",
     "Requested node configuration is not available"},
    {ErrorCode::not_found, "dependency ", "Job dependency problem"},
    {ErrorCode::invalid_argument, "dependency", "Job dependency problem"},
    {ErrorCode::not_found, "reservation", "Requested reservation is invalid"},
    {ErrorCode::not_found, "priority class", "Invalid qos specification"},
    {ErrorCode::invalid_argument, "priority class", "Invalid qos specification"},
    {ErrorCode::permission_denied, "priority class", "Invalid qos specification"},
    {ErrorCode::invalid_argument, "there is no licence", "Invalid license specification"},
    {ErrorCode::never_fits, "licences of", "Invalid license specification"},
    {ErrorCode::never_fits, "has the features", "Invalid feature specification"},
    {ErrorCode::never_fits, "has the resource", "Invalid generic resource (gres) specification"},
    {ErrorCode::never_fits, "of memory on node", "Memory required by task is not available"},
    {ErrorCode::never_fits, "GPUs on node", "Invalid generic resource (gres) specification"},
    {ErrorCode::never_fits, "do not fit the step's", "More processors requested than permitted"},
    {ErrorCode::never_fits, "", kConfiguration},
    {ErrorCode::invalid_argument, "is not one of job", kConfiguration},
    {ErrorCode::limit_exceeded, "has DenyOnLimit", kLimits},
    {ErrorCode::limit_exceeded, "time limit", kTime},
    {ErrorCode::invalid_argument, "least time limit",
     "Invalid time-min specification (exceeds job's time or other limits)"},
    {ErrorCode::invalid_argument, "before its deadline", kTime},
    {ErrorCode::limit_exceeded, "unlimited time", kTime},
    {ErrorCode::unsupported, "an array of a heterogeneous job", "Invalid job array specification"},
    {ErrorCode::limit_exceeded, "array", "Invalid job array specification"},
    {ErrorCode::invalid_argument, "the number of nodes must be",
     "More processors requested than permitted"},
    {ErrorCode::limit_exceeded, "nodes are above", "Node count specification invalid"},
    {ErrorCode::limit_exceeded, "nodes are below", "Node count specification invalid"},
    {ErrorCode::limit_exceeded, "in this minute",
     "Submission rate too high, suggest using job arrays"},
    {ErrorCode::limit_exceeded, "script has", "Job script file too large"},
    {ErrorCode::limit_exceeded, "", kLimits},
    {ErrorCode::permission_denied, "", "Access/permission denied"},
    {ErrorCode::unauthenticated, "", "Protocol authentication error"},
    {ErrorCode::unavailable, "Requested nodes are busy", "Requested nodes are busy"},
    {ErrorCode::unavailable, "", kNobody},
    {ErrorCode::timed_out, "", "Socket timed out on send/recv operation"},
    {ErrorCode::version_mismatch, "", "Incompatible versions of client and server code"},
    {ErrorCode::not_found, "there is no job", "Invalid job id specified"},
    {ErrorCode::not_found, "there is no step", "Invalid job id specified"},
    {ErrorCode::wrong_state, "cannot be cancelled alone",
     "Operation not permitted on individual component of heterogeneous job"},
    {ErrorCode::wrong_state, ": hold is not possible", "Job is no longer pending execution"},
    {ErrorCode::wrong_state, ": release is not possible", "Job is no longer pending execution"},
    {ErrorCode::wrong_state, "was submitted with --no-requeue",
     "Requested operation is presently disabled"},
    {ErrorCode::wrong_state, "is not suspended",
     "Requested operation not supported on this job state"},
};

// The name in quotes that follows `part`.
std::string quoted_after(const std::string& text, std::string_view part) {
  const std::size_t begin = text.find(part) + part.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

}  // namespace

Words words_for(const Error& error) {
  for (const Row& row : kRows) {
    if (row.code != error.code || error.message.find(row.part) == std::string::npos) continue;
    Words words{std::string(row.text), error.message};
    if (words.detail == words.text) words.detail.clear();
    if (row.part == kNoPartition)
      words.detail = "invalid partition specified: " + quoted_after(error.message, kNoPartition);
    if (row.text == kConfiguration && error.message.find("of memory") != std::string::npos)
      words.detail = "Memory specification can not be satisfied\n" + error.message;
    return words;
  }
  return {error.message, ""};
}

}  // namespace gantry::cli::slurm
