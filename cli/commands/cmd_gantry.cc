// gantry: everything that has no command of its own: versions, keys, completion, manual pages, the
// configuration, and a whole cluster on this machine.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "cli/client_config.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/slurm/help.h"
#include "cli/table.h"
#include "common/auth/signature.h"
#include "common/job/verdict_text.h"
#include "common/net/keys.h"
#include "config/config.h"
#include "config/reference.h"

namespace gantry::cli {

COMMANDS(gantry_up, kUp)
COMMANDS(gantry_down, kDown, kStatus)
COMMANDS(gantry_check, kCheck)
COMMANDS(gantry_replay, kReplay)

}  // namespace gantry::cli

namespace gantry::cli::gantry {

namespace {

struct NoOptions {};

constexpr std::size_t kDeepest = 3;  // words of a command with its sub-commands

// Finds one of our commands, or one under Slurm's names.
const Command* any_command(std::string_view name) {
  const Command* command = find_command(all_commands(), name);
  return command != nullptr ? command : find_command(slurm::slurm_commands(), name);
}

struct Named {
  const Command* command;
  std::string program;  // "gctl why"
};

// The command that these words name: a command, and sub-commands of it.
Result<Named> named_command(const std::vector<std::string>& words) {
  Named out{any_command(words.front()), words.front()};
  for (std::size_t i = 1; out.command != nullptr && i < words.size(); ++i) {
    out.program += " " + words[i];
    out.command = find_command(out.command->sub, words[i]);
  }
  if (out.command == nullptr)
    return fail(ErrorCode::usage, fmt::format("there is no command '{}'", out.program));
  return out;
}

// ---- version, help

Result<int> run_version(const Invocation& in) {
  NoOptions none;
  ASSIGN(operands, in.parse(&none, 0, 0));
  if (*operands) fmt::print("gantry {}\n", kVersion);
  return 0;
}

Result<int> run_help(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, kDeepest);
  if ((*operands)->empty()) {
    fmt::print("Gantry's commands; each has --help:\n\n");
    for (const Command* command : all_commands())
      fmt::print("  {:<10} {}\n", command->name, command->summary);
    return 0;
  }
  ASSIGN(named, named_command(**operands));
  fmt::print("{}", help_text(*named->command, named->program));
  return 0;
}

// ---- man, completion

// Shows a page in man's pager. Returns false if man is not installed.
bool shown_by_man(std::string_view page) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t man = ::fork();
  if (man == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    ::execlp("man", "man", "-l", "-", nullptr);
    ::_exit(127);
  }
  ::close(ends[0]);
  ::signal(SIGPIPE, SIG_IGN);  // leaving the pager early ends the writing
  while (man > 0 && !page.empty()) {
    const ssize_t written = ::write(ends[1], page.data(), page.size());
    if (written <= 0) break;
    page.remove_prefix(static_cast<std::size_t>(written));
  }
  ::close(ends[1]);
  int status = 0;
  return man > 0 && ::waitpid(man, &status, 0) == man && WIFEXITED(status) &&
         WEXITSTATUS(status) != 127;
}

Result<int> run_man(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 1, kDeepest);
  ASSIGN(named, named_command(**operands));
  const std::string page = man_page(*named->command, named->program);
  if (!is_terminal(stdout))
    fmt::print("{}", page);
  else if (!shown_by_man(page))
    fmt::print("{}", help_text(*named->command, named->program));
  return 0;
}

Result<int> run_completion(const Invocation& in) {
  NoOptions none;
  ASSIGN(operands, in.parse(&none, 0, 0));
  if (*operands) fmt::print("{}", completion_script(all_commands()));
  return 0;
}

// ---- Slurm's names

Result<int> run_slurm_options(const Invocation& in) {
  NoOptions none;
  ASSIGN(operands, in.parse(&none, 0, 0));
  if (*operands) fmt::print("{}", slurm::options_page());
  return 0;
}

Result<int> run_slurm_completion(const Invocation& in) {
  NoOptions none;
  ASSIGN(operands, in.parse(&none, 0, 0));
  if (*operands) fmt::print("{}", completion_script(slurm::slurm_commands()));
  return 0;
}

// ---- keygen

struct Keygen {
  bool node = false;
};
constexpr Option kKeygenOptions[] = {
    flag("node", "Make a key pair for a node daemon or controller (CURVE) instead of a user's",
         put<&Keygen::node>),
};

Result<int> run_keygen(const Invocation& in) {
  Keygen keygen;
  OPERANDS(operands, in, &keygen, 1, 1);
  const std::string& path = (*operands)->front();
  if (keygen.node) {
    const net::KeyPair pair = net::generate_key_pair();
    TRY(net::save_key_pair(path, pair));
    fmt::print("{}\n", net::to_z85(pair.public_key));
    return 0;
  }
  const auth::SigningKey key = auth::generate_signing_key();
  TRY(auth::save_signing_key(path, key));
  fmt::print("{}\n", net::to_hex(key.verify_key.view()));
  return 0;
}

// ---- config

Result<int> run_config_check(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, 1);
  const std::string path = (*operands)->empty() ? default_config_path() : (*operands)->front();
  ASSIGN(config, load_config(path));
  fmt::print("{}: {}, {}: good\n", path,
             counted(static_cast<std::int64_t>(config->nodes.size()), "node"),
             counted(static_cast<std::int64_t>(config->partitions.size()), "partition"));
  return 0;
}

Result<int> run_config_show(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, 1);
  ASSIGN(config, load_config((*operands)->empty() ? default_config_path() : (*operands)->front()));
  for (const auto& [name, value] : describe(*config)) fmt::print("{} = {}\n", name, value);
  return 0;
}

Result<int> run_config_client(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, 1);
  ASSIGN(config, load_config((*operands)->empty() ? default_config_path() : (*operands)->front()));
  const ControllerConfig& controller = config->controller;
  ASSIGN(text, read_small_file(controller.public_key_file));
  if (!*text)
    return fail(ErrorCode::not_found, fmt::format("there is no {}; start the controller once",
                                                  controller.public_key_file));
  ASSIGN(key, net::parse_public_key(**text));
  fmt::print("{}",
             client_config_text(config->cluster,
                                fmt::format("{}:{}", controller.host, controller.port), *key, ""));
  return 0;
}

Result<int> run_config_reference(const Invocation& in) {
  NoOptions none;
  ASSIGN(operands, in.parse(&none, 0, 0));
  if (*operands) fmt::print("{}", config::reference_page());
  return 0;
}

const Command kConfigCheck{
    {"check", "Read a gantry.yaml and say what is wrong with it", "[FILE]"},
    {.examples = {{"gantry config check", "Is /etc/gantry/gantry.yaml sound?"},
                  {"gantry config check new.yaml", "Is this one?"}},
     .run = run_config_check}};
const Command kConfigShow{
    {"show", "Every option of a gantry.yaml with its value", "[FILE]"},
    {.examples = {{"gantry config show", "Every option with its value, defaults too"}},
     .run = run_config_show}};
const Command kConfigClient{
    {"client", "Write the client.conf that belongs to a gantry.yaml", "[FILE]"},
    {.examples = {{"gantry config client > client.conf",
                   "What a machine needs from which jobs are submitted"}},
     .run = run_config_client}};
const Command kConfigReference{
    {"reference", "The reference page of all options (Markdown)"},
    {.examples = {{"gantry config reference > config.md", "The page docs/config.md"}},
     .run = run_config_reference}};
constexpr const Command* kConfigSub[] = {&kConfigCheck, &kConfigShow, &kConfigClient,
                                         &kConfigReference};

const Command kVersionCommand{
    {"version", "Show the version"},
    {.examples = {{"gantry version", "The version of this program"}}, .run = run_version}};
const Command kHelp{{"help", "List the commands, or show one's help", "[COMMAND [COMMAND...]]"},
                    {.examples = {{"gantry help", "All commands"},
                                  {"gantry help gctl why", "The help of a sub-command"}},
                     .run = run_help}};
const Command kKeygen{
    {"keygen", "Make a key and print its public part", "FILE"},
    {.description = "Writes a new secret key to FILE (mode 0600, never over an existing one) and "
                    "prints the public key, for `gctl key add USER KEY` or, with --node, `gctl "
                    "enroll NODE KEY`.",
     .options = kKeygenOptions,
     .examples = {{"gantry keygen ~/.config/gantry/key", "A key for a user who has no munge"},
                  {"gantry keygen --node /etc/gantry/node.key", "A key for a node"}},
     .run = run_keygen}};
const Command kConfig{
    {"config", "Check and show gantry.yaml"},
    {.examples = {{"gantry config check", "Is gantry.yaml sound?"}}, .sub = kConfigSub}};
const Command kMan{{"man", "Print the manual page of a command (roff)", "COMMAND [COMMAND...]"},
                   {.examples = {{"gantry man gbatch | man -l -", "Read the manual page of gbatch"},
                                 {"gantry man gctl why | man -l -", "That of a sub-command"}},
                    .run = run_man}};
const Command kCompletion{
    {"completion", "Print the bash completion script"},
    {.examples = {{"source <(gantry completion)", "Completion in this shell"}},
     .run = run_completion}};

const Command kSlurmOptions{
    {"options", "The reference page of their options (Markdown)"},
    {.examples = {{"gantry slurm options > slurm-options.md", "The page docs/slurm-options.md"}},
     .run = run_slurm_options}};
const Command kSlurmCompletion{{"completion", "Print their bash completion script"},
                               {.examples = {{"source <(gantry slurm completion)",
                                              "Completion of sbatch and the others in this shell"}},
                                .run = run_slurm_completion}};
constexpr const Command* kSlurmSub[] = {&kSlurmOptions, &kSlurmCompletion};
const Command kSlurmNames{{"slurm", "About the commands under Slurm's names"},
                          {.examples = {{"source <(gantry slurm completion)",
                                         "Completion of sbatch and the others in this shell"}},
                           .sub = kSlurmSub}};

constexpr const Command* kSub[] = {&gantry_up::kUp,
                                   &gantry_down::kDown,
                                   &gantry_down::kStatus,
                                   &gantry_check::kCheck,
                                   &gantry_replay::kReplay,
                                   &kConfig,
                                   &kKeygen,
                                   &kHelp,
                                   &kMan,
                                   &kCompletion,
                                   &kSlurmNames,
                                   &kVersionCommand};

}  // namespace

extern const Command kGantry;
const Command kGantry{
    {"gantry", "A batch scheduler for shared clusters"},
    {.description =
         "The program behind all commands: `gantry gbatch` is gbatch. By itself it starts "
         "a cluster on this machine, checks configurations and makes keys.",
     .examples = {{"gantry up", "Start a cluster of four nodes on this machine"},
                  {"gantry help gbatch", "The help of a command"},
                  {"source <(gantry completion)", "Completion in this shell"}},
     .sub = kSub}};

}  // namespace gantry::cli::gantry
