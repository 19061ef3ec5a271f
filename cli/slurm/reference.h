// Writes the page of docs/ that is made from the tables of options.
#pragma once

#include <string>

#include "cli/slurm/frame.h"

namespace gantry::cli::slurm {

// The text of docs/slurm-options.md: every option of every command, whether it works or is refused.
std::string options_page();

// The folder with the links under Slurm's names that belong to this program: beside the program in
// a build, or where it is installed. "" if there is none.
std::string names_directory();

}  // namespace gantry::cli::slurm
