// Slurm's options that ask for what all nodes have, or that are only shown with the job.
#pragma once

#include "cli/option.h"
#include "cli/slurm/submit/job_request.h"

namespace gantry::cli::slurm {

inline constexpr Option kModestOptions[] = {
    {.name = "acctg-freq",
     .arg = Arg::required,
     .value = "[TYPE=]SECONDS,...",
     .help = "How often usage is sampled, at most each 30 seconds; the kernel counts all that the "
             "tasks use, so that it is never coarser than this",
     .set = call<set::acctg_freq>,
     .env = "ACCTG_FREQ"},
    {.name = "extra-node-info",
     .letter = 'B',
     .arg = Arg::required,
     .value = "1[:1[:1]]",
     .help = "Sockets, cores of each and threads of each that nodes must have at least: 1 or *, "
             "which all have. In a job: a step without -n has their product of tasks on each node, "
             "and other numbers go, too",
     .set = call<set::node_info>},
    {.name = "gpu-freq",
     .arg = Arg::required,
     .value = "CLOCK[,memory=CLOCK]",
     .help =
         "The clocks that are wished for: low, medium, high, highm1 or MHz. Listings show them; "
         "the GPUs keep the clocks that the driver and the node's owner give them, which "
         "verbose says",
     .set = call<set::gpu_freq>,
     .env = "GPU_FREQ"},
    {.name = "gpus-per-socket",
     .arg = Arg::required,
     .value = "N",
     .help = "GPUs on each socket; with --sockets-per-node=1 these are the GPUs of a node",
     .set = call<set::gpus_per_socket>,
     .env = "GPUS_PER_SOCKET"},
    {.name = "sockets-per-node",
     .arg = Arg::required,
     .value = "1",
     .help = "Sockets that nodes must have at least: 1, which all have",
     .set = call<set::sockets_per_node>},
    {.name = "ntasks-per-core",
     .arg = Arg::required,
     .value = "N",
     .help = "At most so many tasks on a core: never more than 1, because cores are given whole",
     .set = call<set::tasks_per_core>},
    {.name = "ntasks-per-socket",
     .arg = Arg::required,
     .value = "N",
     .help = "At most so many tasks on a socket; taken where a node gets no more tasks than that, "
             "because tasks are dealt to nodes and not to sockets",
     .set = call<set::tasks_per_socket>},
    {.name = "threads-per-core",
     .arg = Arg::required,
     .value = "1",
     .help = "1, because cores are given whole",
     .set = call<set::threads_per_core>,
     .env = "THREADS_PER_CORE"},
};

}  // namespace gantry::cli::slurm
