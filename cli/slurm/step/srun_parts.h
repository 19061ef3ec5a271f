// srun in heterogeneous jobs. Its command line may have several parts, "A : B". Each part is for
// one or several components of the job, which --het-group names by their offsets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cli/session.h"
#include "cli/slurm/step/srun_table.h"

namespace gantry::cli::slurm {

// Splits the command line into parts, each with its own options and command. Returns nullopt if it
// is wrong; `status` is then the exit status of srun.
std::optional<std::vector<Parsed>> parse_parts(const Invocation& call, int& status);

// For each part, the groups that it is for: those of --het-group, else the part's own index. If
// there is only the job itself, no group is set. Returns nullopt if this is refused, which is
// already reported.
using Groups = std::vector<std::vector<std::optional<std::uint32_t>>>;
std::optional<Groups> groups_of(const Invocation& call, const std::vector<Parsed>& parts,
                                bool inside);

// The suffix of variables that describe this component.
std::string behind_names(std::optional<std::uint32_t> group);

// Variables that tell the tasks of a step over these components which nodes they have: the nodes of
// these components. Empty if the job has no components.
std::map<std::string, std::string> nodes_of_components(
    const std::vector<std::optional<std::uint32_t>>& groups);

// The ids of the jobs of these groups, within the job that srun is in. An error has Slurm's words.
Result<std::vector<JobId>> jobs_of(const std::vector<std::optional<std::uint32_t>>& groups,
                                   JobId job, Session& session);

// With -v: "srun: jobid 12: nodes(2):`n[1-2]', cpu counts: 4(x2)", from the variables that describe
// the job.
void say_job(const Invocation& call, JobId job);

}  // namespace gantry::cli::slurm
