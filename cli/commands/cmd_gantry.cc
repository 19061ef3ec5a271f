// gantry: everything that has no command of its own: versions, keys, completion, manual pages, the
// configuration, and a whole cluster on this machine.
#include <fmt/core.h>

#include "cli/client_config.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/slurm/reference.h"
#include "common/auth/signature.h"
#include "common/net/keys.h"
#include "config/config.h"
#include "config/reference.h"

namespace gantry::cli {

extern const Command kUp;
extern const Command kDown;
extern const Command kCheck;
extern const Command kStatus;
extern const Command kReplay;

namespace {

struct NoOptions {};

// Finds one of our commands, or one under Slurm's names.
const Command* any_command(std::string_view name) {
  const Command* command = find_command(all_commands(), name);
  return command != nullptr ? command : find_command(slurm::slurm_commands(), name);
}

// ---- version, help

Result<int> run_version(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (*operands) fmt::print("gantry {}\n", kVersion);
  return 0;
}

Result<int> run_help(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  if ((*operands)->empty()) {
    fmt::print("Gantry's commands; each has --help:\n\n");
    for (const Command* command : all_commands())
      fmt::print("  {:<10} {}\n", command->name, command->summary);
    return 0;
  }
  const Command* command = any_command((*operands)->front());
  if (command == nullptr)
    return fail(ErrorCode::usage, fmt::format("there is no command '{}'", (*operands)->front()));
  fmt::print("{}", help_text(*command, command->name));
  return 0;
}

// ---- man, completion

Result<int> run_man(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 1, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const Command* command = any_command((*operands)->front());
  if (command == nullptr)
    return fail(ErrorCode::usage, fmt::format("there is no command '{}'", (*operands)->front()));
  fmt::print("{}", man_page(*command));
  return 0;
}

Result<int> run_completion(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (*operands) fmt::print("{}", completion_script(all_commands()));
  return 0;
}

// ---- Slurm's names

Result<int> run_slurm_options(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (*operands) fmt::print("{}", slurm::options_page());
  return 0;
}

Result<int> run_slurm_completion(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (*operands) fmt::print("{}", completion_script(slurm::slurm_commands()));
  return 0;
}

// ---- keygen

struct Keygen {
  bool node = false;
};
constexpr Option kKeygenOptions[] = {
    {.name = "node",
     .help = "Make a key pair for a node daemon or controller (CURVE) instead of a user's",
     .set = put<&Keygen::node>},
};

Result<int> run_keygen(const Invocation& in) {
  Keygen keygen;
  const auto operands = in.parse(&keygen, 1, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const std::string& path = (*operands)->front();
  if (keygen.node) {
    const net::KeyPair pair = net::generate_key_pair();
    if (auto saved = net::save_key_pair(path, pair); !saved) return tl::unexpected(saved.error());
    fmt::print("{}\n", net::to_z85(pair.public_key));
    return 0;
  }
  const auth::SigningKey key = auth::generate_signing_key();
  if (auto saved = auth::save_signing_key(path, key); !saved) return tl::unexpected(saved.error());
  fmt::print("{}\n", net::to_hex(key.verify_key.view()));
  return 0;
}

// ---- config

Result<int> run_config_check(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const std::string path = (*operands)->empty() ? default_config_path() : (*operands)->front();
  const auto config = load_config(path);
  if (!config) return tl::unexpected(config.error());
  fmt::print("{}: {} nodes, {} partitions: good\n", path, config->nodes.size(),
             config->partitions.size());
  return 0;
}

Result<int> run_config_show(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const auto config =
      load_config((*operands)->empty() ? default_config_path() : (*operands)->front());
  if (!config) return tl::unexpected(config.error());
  for (const auto& [name, value] : describe(*config)) fmt::print("{} = {}\n", name, value);
  return 0;
}

Result<int> run_config_client(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const auto config =
      load_config((*operands)->empty() ? default_config_path() : (*operands)->front());
  if (!config) return tl::unexpected(config.error());
  const ControllerConfig& controller = config->controller;
  const auto text = read_small_file(controller.public_key_file);
  if (!text) return tl::unexpected(text.error());
  if (!*text)
    return fail(ErrorCode::not_found, fmt::format("there is no {}; start the controller once",
                                                  controller.public_key_file));
  const auto key = net::parse_public_key(**text);
  if (!key) return tl::unexpected(key.error());
  fmt::print("{}",
             client_config_text(config->cluster,
                                fmt::format("{}:{}", controller.host, controller.port), *key, ""));
  return 0;
}

Result<int> run_config_reference(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (*operands) fmt::print("{}", config::reference_page());
  return 0;
}

const Command kConfigCheck{.name = "check",
                           .summary = "Read a gantry.yaml and say what is wrong with it",
                           .operands = "[FILE]",
                           .run = run_config_check};
const Command kConfigShow{.name = "show",
                          .summary = "Every option of a gantry.yaml with its value",
                          .operands = "[FILE]",
                          .run = run_config_show};
const Command kConfigClient{.name = "client",
                            .summary = "Write the client.conf that belongs to a gantry.yaml",
                            .operands = "[FILE]",
                            .run = run_config_client};
const Command kConfigReference{.name = "reference",
                               .summary = "The reference page of all options (Markdown)",
                               .run = run_config_reference};
constexpr const Command* kConfigSub[] = {&kConfigCheck, &kConfigShow, &kConfigClient,
                                         &kConfigReference};

const Command kVersionCommand{.name = "version", .summary = "Show the version", .run = run_version};
const Command kHelp{.name = "help",
                    .summary = "List the commands, or show one's help",
                    .operands = "[COMMAND]",
                    .run = run_help};
const Command kKeygen{
    .name = "keygen",
    .summary = "Make a key and print its public part",
    .operands = "FILE",
    .description =
        "Writes a new secret key to FILE (mode 0600, never over an existing one) and "
        "prints the public key, for `gctl key add USER KEY` or, with --node, `gctl "
        "enroll NODE KEY`.",
    .options = kKeygenOptions,
    .run = run_keygen};
const Command kConfig{
    .name = "config", .summary = "Check and show gantry.yaml", .run = nullptr, .sub = kConfigSub};
const Command kMan{.name = "man",
                   .summary = "Print the manual page of a command (roff)",
                   .operands = "COMMAND",
                   .run = run_man};
const Command kCompletion{
    .name = "completion", .summary = "Print the bash completion script", .run = run_completion};

const Command kSlurmOptions{.name = "options",
                            .summary = "The reference page of their options (Markdown)",
                            .run = run_slurm_options};
const Command kSlurmCompletion{.name = "completion",
                               .summary = "Print their bash completion script",
                               .run = run_slurm_completion};
constexpr const Command* kSlurmSub[] = {&kSlurmOptions, &kSlurmCompletion};
const Command kSlurmNames{.name = "slurm",
                          .summary = "About the commands under Slurm's names",
                          .run = nullptr,
                          .sub = kSlurmSub};

constexpr const Command* kSub[] = {&kUp,     &kDown,       &kStatus,     &kCheck,
                                   &kReplay, &kConfig,     &kKeygen,     &kHelp,
                                   &kMan,    &kCompletion, &kSlurmNames, &kVersionCommand};

constexpr Example kExamples[] = {
    {"gantry up", "Start a cluster of four nodes on this machine"},
    {"gantry help gbatch", "The help of a command"},
    {"source <(gantry completion)", "Completion in this shell"},
};

}  // namespace

extern const Command kGantry;
const Command kGantry{
    .name = "gantry",
    .summary = "A batch scheduler for shared clusters",
    .description =
        "The program behind all commands: `gantry gbatch` is gbatch. By itself it starts "
        "a cluster on this machine, checks configurations and makes keys.",
    .examples = kExamples,
    .run = nullptr,
    .sub = kSub,
};

}  // namespace gantry::cli
