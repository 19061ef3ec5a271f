// Options of sbatch and srun that Gantry does not have, or has only under Slurm's names. They are
// in this table so that each one is refused with its reason instead of being ignored. See
// submit_option.h.
#pragma once

#include "cli/submit/submit_option.h"

namespace gantry::cli {

inline constexpr std::string_view kAllGpus =
    "tasks of steps see GPUs of their own: give it to grun";
inline constexpr std::string_view kNoTopology =
    "cores are given as whole cores per task; use -n, -c and --ntasks-per-node";

inline constexpr SubmitOption kRefusedOptionTable[] = {
    {.option = refuses("batch", "ask for features of all nodes with --constraint")},
    {.option = refuses("bb", "there are no burst buffers")},
    {.option = refuses("bbf", "there are no burst buffers")},
    {.option = refuses("cluster-constraint", "there is one cluster")},
    {.option = refuses("clusters", 'M', "there is one cluster"), .families = Families::gantry},
    {.option = refuses("consolidate-segments", "use --topology of gbatch"),
     .families = Families::slurm},
    {.option = refuses("container", "use --container-image")},
    {.option = refuses("container-id", "use --container-image"), .families = Families::slurm},
    {.option = refuses("contiguous", "use --topology"), .families = Families::gantry},
    {.option = refuses("core-spec", 'S', kNoTopology),
     .slurm = {.refused = "no cores are kept from jobs"}},
    {.option = refuses("cores-per-socket", kNoTopology)},
    {.option = refuses("cpu-freq", "the clock of cores is left to the kernel")},
    {.option = refuses("cpus-per-gpu", "use -c with --gpus-per-node"),
     .families = Families::gantry},
    {.option = refuses("delay-boot", "nodes are never booted for a job")},
    {.option = refuses("distribution", 'm', "tasks are laid out block by block"),
     .families = Families::gantry},
    {.option = refuses("extra", "use --comment"), .families = Families::slurm},
    {.option = refuses("extra-node-info", 'B', kNoTopology), .families = Families::gantry},
    {.option = refuses("get-user-env", "jobs get a login-like environment with --export=NONE"),
     .families = Families::gantry},
    {.option = refuses("gid", "a job runs as who submits it")},
    {.option = refuses("gpu-freq", "the clock of GPUs is left to the driver"),
     .families = Families::gantry},
    {.option = refuses("gpus-per-socket", "use --gpus-per-node"), .families = Families::gantry},
    {.option = refuses("gres-flags", "GPUs are always chosen by NVLinks, then by NUMA node"),
     .slurm = {.refused = "GPUs are always given near the cores where there are some"}},
    {.option = refuses("hint", kNoTopology), .families = Families::gantry},
    {.option = refuses("mcs-label", "tenants keep jobs apart"), .families = Families::slurm},
    {.option = refuses("mem-bind", "memory binding is left to the kernel"),
     .families = Families::gantry},
    {.option = refuses("no-kill", 'k', "a job that loses a node ends, or is requeued"),
     .families = Families::gantry},
    {.option = refuses("ntasks-per-core", kNoTopology), .families = Families::gantry},
    {.option = refuses("ntasks-per-gpu", "use --ntasks-per-node"), .families = Families::gantry},
    {.option = refuses("ntasks-per-socket", kNoTopology), .families = Families::gantry},
    {.option = refuses("oom-kill-step", "a job's memory limit is one for all its steps"),
     .families = Families::slurm},
    {.option = refuses("oversubscribe", 's', "cores are never given to two jobs"),
     .families = Families::gantry},
    {.option = refuses("power", "power is not managed")},
    {.option = refuses("prefer", "use --constraint, or --gpu-model of gbatch for a choice of GPUs"),
     .families = Families::slurm},
    {.option = refuses("profile", "usage is always recorded; see gacct"),
     .families = Families::gantry},
    {.option = refuses("propagate", "limits come from the node, not from where you submit"),
     .families = Families::gantry},
    {.option = refuses("qos", 'q', "there are no QOS; use --partition"),
     .families = Families::gantry},
    {.option = refuses("reboot", "nodes are never booted for a job")},
    {.option = refuses("resv-ports", "ports are not managed"), .families = Families::slurm},
    {.option = refuses("segment", "use --topology of gbatch"), .families = Families::slurm},
    {.option = refuses("sockets-per-node", kNoTopology), .families = Families::gantry},
    {.option = refuses("spread-job", "use --ntasks-per-node, or --spread"),
     .families = Families::gantry},
    {.option = refuses("stepmgr", "srun talks to the nodes itself already"),
     .families = Families::slurm},
    {.option = refuses("switches", "Gantry does not know the network's switches"),
     .families = Families::gantry},
    {.option = refuses("thread-spec", kNoTopology),
     .slurm = {.refused = "no cores are kept from jobs"}},
    {.option = refuses("threads-per-core", kNoTopology), .families = Families::gantry},
    {.option = refuses("tres-bind", kAllGpus),
     .slurm = {.refused = "a job's tasks see all GPUs that it has on a node"}},
    {.option = refuses("tres-per-job", "use --gpus"), .families = Families::gantry},
    {.option = refuses("tres-per-node", "use --gres"), .families = Families::gantry},
    {.option = refuses("tres-per-task", "use --gpus-per-task"), .families = Families::gantry},
    {.option = refuses("uid", "a job runs as who submits it")},
    {.option = refuses("use-min-nodes", "the smallest number of nodes is always taken"),
     .families = Families::gantry},
    {.option = refuses("wait-all-nodes", "a job always starts on all its nodes or on none"),
     .families = Families::gantry},
    {.option = refuses("wckey", "use --comment"), .families = Families::gantry},
    {.option = refuses("x11", "X11 is not forwarded"), .families = Families::slurm},
};

}  // namespace gantry::cli
