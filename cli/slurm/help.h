// The texts of --help and --usage under Slurm's names. They have the forms of Slurm's texts,
// because scripts look for them ("Usage: squeue [OPTIONS]", "Help options:", "Valid <COMMAND>
// values are:"), and are made from the tables of options from which everything else is made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/slurm/frame.h"

namespace gantry::cli::slurm {

// A word that scontrol, sacctmgr or sreport takes as its command, with one sentence about it.
struct CommandWord {
  std::string name;
  std::string what;
};
std::vector<CommandWord> scontrol_words();
std::vector<CommandWord> sacctmgr_words();
std::vector<CommandWord> sreport_words();

// Refused options are not listed, so users find only options that work. `common` are the options
// that every command has.
std::string slurm_help(const Command& command, std::span<const Option> common);
std::string slurm_usage(const Command& command, std::span<const Option> common);

// Writes the page of docs/ that is made from the tables of options.

// The text of docs/slurm-options.md: every option of every command, whether it works or is refused.
std::string options_page();

// The folder with the links under Slurm's names that belong to this program: beside the program in
// a build, or where it is installed. "" if there is none.
std::string names_directory();

}  // namespace gantry::cli::slurm
