// Options of Slurm for jobs that are refused by name, with what to do instead: never ignored.
#pragma once

#include "cli/option.h"

namespace gantry::cli::slurm {

inline constexpr Option kSlurmRefused[] = {
    {.name = "acctg-freq", .refused = "usage is always sampled"},
    {.name = "batch", .refused = "ask for features of all nodes with --constraint"},
    {.name = "bb", .refused = "there are no burst buffers"},
    {.name = "bbf", .refused = "there are no burst buffers"},
    {.name = "cluster-constraint", .refused = "there is one cluster"},
    {.name = "consolidate-segments", .refused = "use --topology of gbatch"},
    {.name = "container", .refused = "use --container-image"},
    {.name = "container-id", .refused = "use --container-image"},
    {.name = "contiguous",
     .refused = "Gantry does not know which nodes are neighbours; gbatch has --topology"},
    {.name = "core-spec", .letter = 'S', .refused = "no cores are kept from jobs"},
    {.name = "cores-per-socket",
     .refused = "cores are given as whole cores per task; use -n, -c and --ntasks-per-node"},
    {.name = "cpu-freq", .refused = "the clock of cores is left to the kernel"},
    {.name = "delay-boot", .refused = "nodes are never booted for a job"},
    {.name = "extra", .refused = "use --comment"},
    {.name = "extra-node-info",
     .letter = 'B',
     .refused = "cores are given as whole cores per task; use -n, -c and --ntasks-per-node"},
    {.name = "gid", .refused = "a job runs as who submits it"},
    {.name = "gpu-freq", .refused = "the clock of GPUs is left to the driver"},
    {.name = "gpus-per-socket", .refused = "use --gpus-per-node"},
    {.name = "gres-flags", .refused = "GPUs are always given near the cores where there are some"},
    {.name = "mcs-label", .refused = "tenants keep jobs apart"},
    {.name = "mem-bind", .refused = "memory binding is left to the kernel"},
    {.name = "mincpus", .refused = "use -c and --ntasks-per-node"},
    {.name = "ntasks-per-socket",
     .refused = "cores are given as whole cores per task; use -n, -c and --ntasks-per-node"},
    {.name = "oom-kill-step", .refused = "a job's memory limit is one for all its steps"},
    {.name = "overcommit", .letter = 'O', .refused = "every task has its own cores"},
    {.name = "power", .refused = "power is not managed"},
    {.name = "prefer",
     .refused = "use --constraint, or --gpu-model of gbatch for a choice of GPUs"},
    {.name = "propagate", .refused = "limits come from the node, not from where you submit"},
    {.name = "reboot", .refused = "nodes are never booted for a job"},
    {.name = "resv-ports", .refused = "ports are not managed"},
    {.name = "segment", .refused = "use --topology of gbatch"},
    {.name = "sockets-per-node",
     .refused = "cores are given as whole cores per task; use -n, -c and --ntasks-per-node"},
    {.name = "spread-job", .refused = "use --ntasks-per-node, or --spread of gbatch"},
    {.name = "stepmgr", .refused = "srun talks to the nodes itself already"},
    {.name = "thread-spec", .refused = "no cores are kept from jobs"},
    {.name = "time-min", .refused = "a job starts with its whole time limit"},
    {.name = "tres-bind", .refused = "a job's tasks see all GPUs that it has on a node"},
    {.name = "uid", .refused = "a job runs as who submits it"},
    {.name = "x11", .refused = "X11 is not forwarded"},
};

}  // namespace gantry::cli::slurm
