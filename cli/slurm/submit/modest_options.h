// Slurm's options that ask for what all nodes have, or that are only stored and shown.
#pragma once

#include <span>
#include <vector>

#include "cli/option.h"
#include "cli/slurm/submit/job_request.h"

namespace gantry::cli::slurm {

inline constexpr Option kModestOptions[] = {
    takes("acctg-freq", "[TYPE=]SECONDS,...",
          "How often usage is sampled, at most each 30 seconds; the kernel counts all that the "
          "tasks use, so that it is never coarser than this",
          call<set::acctg_freq>)
        .from_env("ACCTG_FREQ"),
    takes("extra-node-info", 'B', "1[:1[:1]]",
          "Sockets, cores of each and threads of each that nodes must have at least: 1 or *, which "
          "all have. In a job: a step without -n has their product of tasks on each node, and "
          "other numbers go, too",
          call<set::node_info>),
    takes(
        "gpu-freq", "CLOCK[,memory=CLOCK]",
        "The clocks that are wished for: low, medium, high, highm1 or MHz. Listings show them; the "
        "GPUs keep the clocks that the driver and the node's owner give them, which verbose says",
        call<set::gpu_freq>)
        .from_env("GPU_FREQ"),
    takes("gpus-per-socket", "N",
          "GPUs on each socket; with --sockets-per-node=1 these are the GPUs of a node",
          call<set::gpus_per_socket>)
        .from_env("GPUS_PER_SOCKET"),
    takes("sockets-per-node", "1", "Sockets that nodes must have at least: 1, which all have",
          call<set::sockets_per_node>),
    takes("ntasks-per-core", "N",
          "At most so many tasks on a core: never more than 1, because cores are given whole",
          call<set::tasks_per_core>),
    takes("ntasks-per-socket", "N",
          "At most so many tasks on a socket; taken where a node gets no more tasks than that, "
          "because tasks are dealt to nodes and not to sockets",
          call<set::tasks_per_socket>),
    takes("threads-per-core", "1", "1, because cores are given whole", call<set::threads_per_core>)
        .from_env("THREADS_PER_CORE"),
};

// Rules that connect Slurm's options about GPUs, and what follows from them: the numbers of nodes,
// of tasks and of GPUs on each node.

// Call it before finish_request(), if an allocation is requested. The errors are Slurm's sentences.
// --gpus with --gpus-per-node determines the number of nodes, and --gpus with --gpus-per-task the
// number of tasks. It applies to whole GPUs only.
Result<void> settle_gpus(const Invocation& call, SlurmRequest& request,
                         std::span<const Given> given);

// Returns the texts by which listings show the options that ask for GPUs. If an option is given
// twice, the last one counts; --gres and --gpus-per-node are both shown.
AskedTres asked_tres(std::span<const Given> given);

// Components of a heterogeneous job: "sbatch A : B", and the options that B inherits from A.

// As in Slurm a component inherits some options of the previous one, unless it has its own: those
// about whose job it is, when it may run and for how long, and --mem. Options about where it runs
// and its resources are not inherited.
void inherit_options(const std::vector<Given>& from, std::vector<Given>& to);

}  // namespace gantry::cli::slurm
