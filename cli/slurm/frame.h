// What the commands under Slurm's names share: how they are found, parsed, and how they fail.
//
// They are commands as ours are (cli/command.h), with tables of options from which parsing, --help,
// manual pages, completion and docs/slurm-options.md come. What differs is the manner: names of
// options may be shortened, errors have Slurm's words and exit statuses, --version is Slurm's.
#pragma once

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

// Runs `args` as `command`; prints errors; returns the exit status.
int run(const Command& command, std::vector<std::string> args);

// The options and operands as typed. Nothing: help or the version was asked for, or the command
// line is wrong; that has been printed, and `status` is what the command ends with.
std::optional<Parsed> parse(const Invocation& call, int& status);

// The same for each component of a heterogeneous job: A : B : C OPERAND... The last one has the
// operands.
std::optional<std::vector<Parsed>> parse_components(const Invocation& call, int& status);

// Calls the setters in order. False: a value is wrong, which has been said in Slurm's words;
// `status` is what the command ends with.
bool apply(const Invocation& call, std::span<const Given> given, void* target, int& status);

// Whether what was typed makes an option of the environment count for nothing.
using Outdone = bool (*)(std::span<const Given> typed, const Given& of_environment);
bool was_typed(std::span<const Given> typed, std::initializer_list<std::string_view> names);

// parse(), then apply() to what the environment and the command line say. Operands are for the
// caller to judge.
std::optional<std::vector<std::string>> parse_into(const Invocation& call, void* target,
                                                   int& status, Outdone outdone = nullptr);

// A line with the time, as squeue and sinfo have it above their long tables.
void print_date();

// "sbatch: error: TEXT" and a line end, on standard error.
void complain(const Invocation& call, std::string_view text);

// An error as Slurm words it. `text` follows "Batch job submission failed: " or the like; `detail`
// is our own sentence, or Slurm's when it has a line of its own for it; may be empty.
struct Words {
  std::string text;
  std::string detail;
};
Words words_for(const Error& error);

// Exit status of a command line that getopt would refuse: 255 of those that start jobs, else 1.
int usage_status(const Command& command);

// The cluster's name: of the client's configuration, or inside a job of its environment.
std::string cluster_name();

// --clusters, or SLURM_CLUSTERS: our own name or "all" are fine, any other is refused in Slurm's
// words (false). `named`: the cluster's name if one was given, else "".
bool check_clusters(const Invocation& call, const std::optional<std::string>& asked,
                    std::string& named, int& status);

// An option that changes nothing because what it asks for is always so.
Result<void> always(void* target, std::string_view value);

}  // namespace gantry::cli::slurm
