// Slurm's options that ask for what all nodes have, or that are only shown with the job.
#pragma once

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

}  // namespace gantry::cli::slurm
