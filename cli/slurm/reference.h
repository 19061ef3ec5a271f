// The page of docs/ that is made from the tables of options.
#pragma once

#include <string>

#include "cli/slurm/frame.h"

namespace gantry::cli::slurm {

// docs/slurm-options.md: every option of every command, honoured or refused.
std::string options_page();

// The folder with the commands under Slurm's names that belongs to this program: beside it as it
// is built, or where it is installed; "" if there is none.
std::string names_directory();

}  // namespace gantry::cli::slurm
