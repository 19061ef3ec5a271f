// Components of a heterogeneous job: "sbatch A : B", and what B has of A.
#pragma once

#include <vector>

#include "cli/option.h"

namespace gantry::cli::slurm {

// As in Slurm a component has some options of the one before it, unless it has its own: those that
// say whose job it is, when it may run and for how long, and --mem. What says where it runs and
// with how much, each component says for itself.
void inherit_options(const std::vector<Given>& from, std::vector<Given>& to);

}  // namespace gantry::cli::slurm
