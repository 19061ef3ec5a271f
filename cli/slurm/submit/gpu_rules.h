// What Slurm's options about GPUs must have in common, and what follows from them: the numbers of
// nodes, of tasks and of GPUs on each node.
#pragma once

#include <span>

#include "cli/slurm/submit/job_request.h"

namespace gantry::cli::slurm {

// Call it before finish_request(), for a job that is asked for. The errors are Slurm's sentences.
// --gpus with --gpus-per-node says how many nodes there are, and --gpus with --gpus-per-task how
// many tasks. It applies to whole GPUs only.
Result<void> settle_gpus(const Invocation& call, SlurmRequest& request,
                         std::span<const Given> given);

// Returns the texts by which listings show the options that ask for GPUs. If an option is given
// twice, the last one counts; --gres and --gpus-per-node are both shown.
AskedTres asked_tres(std::span<const Given> given);

}  // namespace gantry::cli::slurm
