// Options of sbatch and srun that Gantry has not: known by name, so that each is refused with its
// reason instead of being ignored.
#pragma once

#include "cli/option.h"

namespace gantry::cli {

inline constexpr std::string_view kAllGpus =
    "tasks of steps see GPUs of their own: give it to grun";
inline constexpr std::string_view kNoTopology =
    "cores are given as whole cores per task; use -n, -c and --ntasks-per-node";

// Of who starts no tasks.
inline constexpr Option kRefusedStepOptions[] = {{.name = "gpu-bind", .refused = kAllGpus}};

// What Slurm has and Gantry has not: refused with the reason, never ignored.
inline constexpr Option kRefusedJobOptions[] = {
    {.name = "batch", .refused = "ask for features of all nodes with --constraint"},
    {.name = "bb", .refused = "there are no burst buffers"},
    {.name = "bbf", .refused = "there are no burst buffers"},
    {.name = "cluster-constraint", .refused = "there is one cluster"},
    {.name = "clusters", .letter = 'M', .refused = "there is one cluster"},
    {.name = "container", .refused = "use --container-image"},
    {.name = "contiguous", .refused = "Gantry does not know which nodes are neighbours"},
    {.name = "core-spec", .letter = 'S', .refused = kNoTopology},
    {.name = "cores-per-socket", .refused = kNoTopology},
    {.name = "cpu-freq", .refused = "the clock of cores is left to the kernel"},
    {.name = "cpus-per-gpu", .refused = "use -c with --gpus-per-node"},
    {.name = "delay-boot", .refused = "nodes are never booted for a job"},
    {.name = "distribution", .letter = 'm', .refused = "tasks are laid out block by block"},
    {.name = "extra-node-info", .letter = 'B', .refused = kNoTopology},
    {.name = "get-user-env", .refused = "jobs get a login-like environment with --export=NONE"},
    {.name = "gid", .refused = "a job runs as who submits it"},
    {.name = "gpu-freq", .refused = "the clock of GPUs is left to the driver"},
    {.name = "gpus-per-socket", .refused = "use --gpus-per-node"},
    {.name = "gres-flags", .refused = "GPUs are always chosen by NVLinks, then by NUMA node"},
    {.name = "hint", .refused = kNoTopology},
    {.name = "mem-bind", .refused = "memory binding is left to the kernel"},
    {.name = "mincpus", .refused = "use -c and --ntasks-per-node"},
    {.name = "no-kill", .letter = 'k', .refused = "a job that loses a node ends, or is requeued"},
    {.name = "ntasks-per-core", .refused = kNoTopology},
    {.name = "ntasks-per-gpu", .refused = "use --ntasks-per-node"},
    {.name = "ntasks-per-socket", .refused = kNoTopology},
    {.name = "overcommit", .letter = 'O', .refused = "every task has its own cores"},
    {.name = "oversubscribe", .letter = 's', .refused = "cores are never given to two jobs"},
    {.name = "power", .refused = "power is not managed"},
    {.name = "profile", .refused = "usage is always recorded; see gacct"},
    {.name = "propagate", .refused = "limits come from the node, not from where you submit"},
    {.name = "qos", .letter = 'q', .refused = "there are no QOS; use --partition"},
    {.name = "reboot", .refused = "nodes are never booted for a job"},
    {.name = "sockets-per-node", .refused = kNoTopology},
    {.name = "spread-job", .refused = "use --ntasks-per-node"},
    {.name = "switches", .refused = "Gantry does not know the network's switches"},
    {.name = "thread-spec", .refused = kNoTopology},
    {.name = "threads-per-core", .refused = kNoTopology},
    {.name = "tres-bind", .refused = kAllGpus},
    {.name = "tres-per-job", .refused = "use --gpus"},
    {.name = "tres-per-node", .refused = "use --gres"},
    {.name = "tres-per-task", .refused = "use --gpus-per-task"},
    {.name = "uid", .refused = "a job runs as who submits it"},
    {.name = "use-min-nodes", .refused = "the smallest number of nodes is always taken"},
    {.name = "wait-all-nodes", .refused = "a job always starts on all its nodes or on none"},
    {.name = "wckey", .refused = "use --comment"},
};

}  // namespace gantry::cli
