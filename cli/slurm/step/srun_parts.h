// srun in heterogeneous jobs: its command line may have parts, A : B, and each part is for one or
// several of the job's components, which --het-group names by their offsets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cli/session.h"
#include "cli/slurm/step/srun_table.h"

namespace gantry::cli::slurm {

// The command line, part by part; each has its own options and command. Nothing: `status` is how
// srun ends.
std::optional<std::vector<Parsed>> parse_parts(const Invocation& call, int& status);

// Of each part the groups that it is for, unless there is only the job itself: as --het-group says,
// else the part's place. Nothing: refused, which has been said.
using Groups = std::vector<std::vector<std::optional<std::uint32_t>>>;
std::optional<Groups> groups_of(const Invocation& call, const std::vector<Parsed>& parts,
                                bool inside);

// What stands behind the names of variables that describe this component.
std::string behind_names(std::optional<std::uint32_t> group);

// What the tasks of a step over these components are told of the job's nodes: those of the
// components. Empty where the job has none.
std::map<std::string, std::string> nodes_of_components(
    const std::vector<std::optional<std::uint32_t>>& groups);

// The jobs of these groups of the job that srun is in. An error is in Slurm's words.
Result<std::vector<JobId>> jobs_of(const std::vector<std::optional<std::uint32_t>>& groups,
                                   JobId job, Session& session);

}  // namespace gantry::cli::slurm
