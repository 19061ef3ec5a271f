// The frame is what the commands under Slurm's names have in common: how they are found, how they
// are parsed, and how they fail.
//
// The commands are declared like Gantry's own ones (cli/command.h), with tables of options from
// which parsing, --help, manual pages, completion and docs/slurm-options.md are made. They differ
// from Gantry's in three ways: names of options may be shortened, errors have Slurm's texts and
// exit statuses, and --version is Slurm's.
#pragma once

#include <fmt/core.h>

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"

namespace gantry::cli::slurm {

inline constexpr std::string_view kSlurmVersion = "slurm 25.05.0";

std::span<const Command* const> slurm_commands();

// Runs `args` as `command`. Prints errors and returns the exit status.
int run(const Command& command, std::vector<std::string> args);

// What --help and --usage print.
std::string help_of(const Command& command);
std::string usage_of(const Command& command);

// The options and operands as typed. Returns nullopt if help or the version was asked for, or if
// the command line is wrong. In both cases the text is already printed, and `status` is the exit
// status of the command.
std::optional<Parsed> parse(const Invocation& call, int& status);

// Parses the command line of a heterogeneous job, "A : B : C OPERAND...", into one result for each
// component. The last one has the operands.
std::optional<std::vector<Parsed>> parse_components(const Invocation& call, int& status);

// Calls the setters in order. Returns false if a value is wrong; this is already reported in
// Slurm's words, and `status` is the exit status of the command.
bool apply(const Invocation& call, std::span<const Given> given, void* target, int& status);

// Decides whether typed options override an option from the environment.
using Outdone = bool (*)(std::span<const Given> typed, const Given& of_environment);
bool was_typed(std::span<const Given> typed, std::initializer_list<std::string_view> names);

// Calls parse(), then apply() on the options of the environment and the command line. The caller
// has to check the operands.
std::optional<std::vector<std::string>> parse_into(const Invocation& call, void* target,
                                                   int& status, Outdone outdone = nullptr);

// Prints a line with the time, as squeue and sinfo do above their long tables.
void print_date();

// Prints "sbatch: error: TEXT" and a newline on standard error. Returns 1, the exit status for it.
int complain(const Invocation& call, std::string_view text);

// Prints a text on standard error as it is. Returns 1, the exit status for it.
template <class... Args>
int refused(fmt::format_string<Args...> text, Args&&... args) {
  fmt::print(stderr, text, std::forward<Args>(args)...);
  return 1;
}

// How often -v was given, or the level in a variable such as SBATCH_DEBUG; 0 is the default.
std::size_t verbosity_of(std::span<const Given> given);

// With -v: prints the block "defined options" on standard error, a line for each option that the
// command line, the environment or the script gives. `given` is in the order of application.
void list_options(const Invocation& call, std::span<const Given> given);

// With -v: prints every option of a listing command on standard error, as "iterate     = 0".
void list_values(const Invocation& call, std::span<const Given> given);

// An error in Slurm's words. `text` follows "Batch job submission failed: " or similar words.
// `detail` is Gantry's sentence, or Slurm's if Slurm prints a separate line; it may be empty.
struct Words {
  std::string text;
  std::string detail;
};
Words words_for(const Error& error);

// Exit status for a command line that getopt would refuse: 255 for commands that start jobs, else
// 1.
int usage_status(const Command& command);

// The cluster's name: from the client's configuration, or inside a job from its environment.
std::string cluster_name();

// Checks --clusters or SLURM_CLUSTERS: this cluster's name and "all" are accepted, any other name
// is refused in Slurm's words (returns false). `named` becomes the cluster's name if one was given,
// else "".
bool check_clusters(const Invocation& call, const std::optional<std::string>& asked,
                    std::string& named, int& status);

// The setter of an option that asks for what is always done.
Result<void> always(void* target, std::string_view value);

}  // namespace gantry::cli::slurm
